"use strict";

const EVERY = 3000, SLOWEST = 15000;                    // milliseconds between refreshes
const STALE = 90;                                       // seconds; without viewers the service refreshes every 30
const COLOURS = 6, DASHES = ["solid", "dash", "dot"];    // as in page.css
const dark = matchMedia("(prefers-color-scheme: dark)"), narrow = matchMedia("(max-width: 34rem)");
const at = id => document.getElementById(id);

let timer = 0, failures = 0, since = null, lastWords = {}, shown = "", shownList = "", latest = null, controller = null, drawnWidth = 0;

// ---- talking to the service

async function get(path) {
  const token = sessionStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store", signal: controller.signal });
  if (answer.status === 401) throw new Locked();
  if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
  return { ...await answer.json(), now: Date.parse(answer.headers.get("date")) / 1000 };
}

class Locked extends Error {}

async function look() {
  clearTimeout(timer);
  if (document.hidden) return;
  controller?.abort();
  const mine = controller = new AbortController(), late = setTimeout(() => mine.abort(), SLOWEST);
  let experiments, name, summary;
  try {
    ({ experiments } = await get("/experiments"));
    name = (experiments.find(one => `#/${one.name}` === location.hash) ?? experiments[0]).name;
    summary = await get(`/experiments/${name}/summary`);
  } catch (error) {
    if (mine !== controller) return;                    // a newer refresh has taken over
    if (error instanceof Locked) return askForToken();
    lost();
  } finally {
    clearTimeout(late);
  }
  if (mine !== controller) return;
  timer = setTimeout(look, Math.min(SLOWEST, EVERY * 2 ** Math.min(failures, 3)));
  if (!summary) return;
  connected();
  const { tickets, lead } = summary;                     // newer than the list
  showList(experiments.map(one => one.name === name ? { ...one, tickets, lead } : one), name);
  show(summary);
}

function connected() {
  if (failures) announce("The connection is back.");
  failures = 0;
  since = new Date();
  document.body.classList.remove("lost", "waiting");
  at("token-form").hidden = true;
  setText("connection-words", `Up to date at ${clock(since)}`);
}

function lost() {
  failures += 1;
  document.body.classList.add("lost");
  const words = since ? `No connection, retrying. Showing data from ${clock(since)}.`
    : "No connection yet, retrying.";
  if (failures === 1) announce(words);
  setText("connection-words", words);
}

function askForToken() {
  document.body.classList.add("waiting");
  const again = sessionStorage.getItem("token") !== null;
  sessionStorage.removeItem("token");
  document.querySelector("nav").hidden = at("experiment").hidden = true;
  at("token-form").hidden = false;
  setText("token-words", again ? "That is not the token of this service." : "");
  setText("connection-words", "Waiting for the token");
  at("token").focus();
}

at("token-form").addEventListener("submit", event => {
  event.preventDefault();
  sessionStorage.setItem("token", at("token").value.trim());
  at("token").value = "";
  look();
});
document.addEventListener("visibilitychange", look);
addEventListener("online", look);
addEventListener("hashchange", () => look().then(() => at("experiment").focus()));
dark.addEventListener("change", redraw);
new ResizeObserver(() => { if (at("found").clientWidth !== drawnWidth) redraw(); }).observe(at("found"));

function announce(words) { at("announcement").textContent = words; }

// ---- words and numbers

function setText(id, words) {
  const place = at(id);
  if (place.textContent !== words) place.textContent = words;
}

function fill(place, ...children) { place.replaceChildren(...children.flat()); }

function make(tag, words, attributes = {}) {
  const made = document.createElement(tag);
  if (words !== undefined) made.textContent = words;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const whole = new Intl.NumberFormat("en");

function words(x) {
  if (x === null || x === undefined) return "–";
  x = Number(x);                                        // infinities are strings in JSON
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  const text = size && (size >= 1e9 || size < 1e-3) ? x.toExponential(2).replace("e+", "e") : digits.format(x);
  return text.replace("-", "−");
}

function clock(date) { return date.toLocaleTimeString("en-GB"); }

function moment(seconds) {
  return new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "short", timeStyle: "medium" });
}

function span(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? units[3];
  return `${words(seconds / size)} ${unit}`;
}

function share(part, of) { return of ? `${words(Number((100 * part / of).toPrecision(2)))} % of requests` : ""; }

// ---- the list of experiments

function showList(experiments, name) {
  document.querySelector("nav").hidden = experiments.length < 2;
  const key = JSON.stringify([experiments, name]);
  const list = at("experiments");
  if (key === shownList) return;
  shownList = key;
  if (list.children.length !== experiments.length) {    // otherwise keep the elements, and with them the focus
    fill(list, experiments.map(() => {
      const item = make("li"), link = make("a");
      fill(link, make("strong"), make("span"));
      fill(item, link);
      return item;
    }));
  }
  list.querySelectorAll("a").forEach((link, i) => {
    const one = experiments[i];
    link.href = `#/${one.name}`;
    one.name === name ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
    link.children[0].textContent = one.name;
    link.children[1].textContent = !one.tickets ? "reading…" : one.tickets.asked ? one.lead.words : "no request yet";
  });
}

// ---- one experiment

function show(found) {
  at("experiment").hidden = false;
  setText("name", found.name);
  document.title = found.lead?.arm ? `${found.lead.arm} leads ${found.name} – tailproof` : `${found.name} – tailproof`;
  const stale = found.at && found.now - found.at > STALE;
  at("reading").hidden = found.read === 1 && !stale;
  setText("reading", stale ? `The journal cannot be read at the moment. Showing data from ${moment(found.at)}.`
    : `Reading the journal: ${Math.round(100 * found.read)} % so far. The numbers below are from that part.`);
  const key = JSON.stringify({ ...found, at: 0, now: 0 });
  if (key === shown) return;
  shown = key;
  const known = found.tickets !== undefined, asked = known && found.tickets.asked > 0;
  at("empty").hidden = !known || asked || found.read < 1;
  at("found").hidden = !asked;
  setText("goal", !known ? "" : `Goal: ${found.aim_words}. ${meaning(found)} ` +
    (found.explore ? `${words(100 * found.explore)} % of decisions are random.` : "Exploration is up to the policy."));
  if (!asked) return known && showEmpty(found);
  if (found.read === 1) {
    const before = lastWords[found.name];
    if (before !== undefined && before !== found.lead.words) announce(`${found.name}: ${found.lead.words}`);
    lastWords[found.name] = found.lead.words;
  }
  showLead(found);
  showTickets(found);
  setText("tail", found.tail.words || `The tail is estimated once there are ${found.tail.least} rewards.`);
  setText("filter", found.filter.words);
  at("advice").hidden = !found.filter.advice;
  setText("advice", `Advice for a median filter: ${found.filter.advice}`);
  setText("recipe", found.recipe);
  for (const id of ["pulls-section", "rewards-section"]) at(id).hidden = !found.history.ends.length;
  showTables(found.history);
  latest = found;
  draw(found);
}

function meaning({ wait, silence, rewards }) {
  const what = rewards === "sum" ? "All rewards" : "The first reward", until = span(wait);
  return silence === null ? `${what} within ${until} count; without one, a request counts as lost.`
    : `${what} within ${until} count; without one, a request has the reward ${words(silence)}.`;
}

function showEmpty(found) {
  const token = sessionStorage.getItem("token") ? " \\\n  -H \"Authorization: Bearer $TAILPROOF_TOKEN\"" : "";
  const line = (act, body) => `curl ${location.origin}/experiments/${found.name}/${act}${token} \\\n` +
    `  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(body)}'`;
  const offer = found.offer ? {} : { offer: ["red", "blue"] };
  setText("curl-ask", line("ask", { ...offer, ticket: "visit 1" }));
  setText("curl-tell", line("tell", { ticket: "visit 1", reward: 12.5 }));
}

function showLead(found) {
  const { lead } = found, badge = at("lead-badge");
  badge.className = `badge ${lead.sure ? "sure" : lead.arm ? "" : "early"}`;
  const known = found.arms.some(arm => arm.estimate !== null);
  setText("lead-badge", lead.sure ? "sure" : lead.arm ? "not sure" : known ? "cannot tell" : "too early");
  setText("lead-words", lead.words);
  setText("how", lead.how);
  setText("aim-column", found.aim);
  fill(at("arms").tBodies[0], found.arms.map(arm => {
    const row = make("tr"), name = make("th", undefined, { scope: "row" });
    const drawn = slot(found.history, arm.name);
    if (drawn >= 0) name.append(swatch(drawn));
    name.append(arm.here ? arm.name : `${arm.name} (no longer offered)`);
    if (!arm.here) row.className = "gone";
    const cells = [words(arm.estimate), arm.low === null ? "–" : `${words(arm.low)} to ${words(arm.high)}`,
      ...["pulls", "rewards", "pending", "missing"].map(key => whole.format(arm[key])),
      `${whole.format(arm.late)} (${words(arm.late_sum)})`];
    fill(row, name, cells.map(text => make("td", text, { class: "n" })));
    return row;
  }));
  at("more-arms").hidden = !found.more_arms;
  setText("more-arms", `and ${whole.format(found.more_arms)} more`);
}

function showTickets({ tickets, outcomes, silence }) {
  const rows = [
    ["Requests", tickets.asked, `${whole.format(outcomes)} outcomes learned or given up`],
    ["Rewards", tickets.rewards, "came in time"],
    ["Pending", tickets.pending, "their outcome is still open"],
    silence === null ? ["Lost", tickets.lost, share(tickets.lost, tickets.asked)]
      : ["Silent", tickets.silent, `no reward in time, so ${words(silence)}`],
    ["Late", tickets.late, `came too late and were not learned; ${words(tickets.late_sum)} in all`],
  ];
  fill(at("tickets"), rows.map(([name, count, more]) => {
    const group = make("div"), value = make("dd", whole.format(count));
    value.append(make("small", more));
    fill(group, make("dt", name), value);
    return group;
  }));
}

function showTables(history) {
  const times = history.ends.map(moment), names = history.arms.map(arm => arm.name);
  const others = history.others.some(count => count > 0);
  table("pulls-table", "Requests that got each arm, by period", ["until", ...names, ...(others ? ["other arms"] : [])],
    times.map((time, i) => [time, ...history.arms.map(arm => whole.format(arm.pulls[i])),
      ...(others ? [whole.format(history.others[i])] : [])]));
  table("rewards-table", "Median reward, and the middle 80 % of rewards", ["until", ...names],
    times.map((time, i) => [time, ...history.arms.map(arm => arm.middle[i] === null ? "–"
      : `${words(arm.middle[i])} (${words(arm.low[i])} to ${words(arm.high[i])})`)]));
}

function table(id, caption, heads, rows) {
  const head = make("thead"), body = make("tbody"), line = make("tr");
  fill(line, heads.map((text, i) => make("th", text, { scope: "col", ...(i ? { class: "n" } : {}) })));
  fill(head, line);
  fill(body, rows.map(([first, ...rest]) => {
    const row = make("tr");
    fill(row, make("th", first, { scope: "row" }), rest.map(text => make("td", text, { class: "n" })));
    return row;
  }));
  fill(at(id), make("caption", caption), head, body);
}

// ---- charts; plotly reads text as markup, so names are escaped for it

function escaped(name) {
  const short = name.length > 24 ? `${name.slice(0, 23)}…` : name;
  return short.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function slot(history, name) { return history.arms.findIndex(arm => arm.name === name); }
function colour(i) { return theme(i < 0 ? "soft" : `arm-${i % COLOURS}`); }
function theme(name) { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); }

function swatch(i) {
  return make("span", undefined, { class: `swatch ${i < 0 ? "" : `arm-${i % COLOURS}`}`, "aria-hidden": "true" });
}

function picture(id, traces, more) {
  const place = at(id), rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const size = { width: Math.floor(place.getBoundingClientRect().width), height: rem * (more.rems ?? (narrow.matches ? 16 : 19)) };
  Plotly.react(place, traces, { ...layout(more), ...size }, { displayModeBar: false, doubleClick: false, showTips: false });
}

function layout({ rems, ...more }) {
  const line = theme("line");
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, fixedrange: true, automargin: true, tickangle: 0, tickfont: { color: theme("soft") } };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: theme("ink"), family: "system-ui, sans-serif", size: 13 },
    margin: { l: 8, r: 12, t: 8, b: 8 }, showlegend: false, dragmode: false, hovermode: "closest", ...more,
    xaxis: { ...axis, ...more.xaxis }, yaxis: { ...axis, ...more.yaxis },
  };
}

function redraw() { if (latest && !at("found").hidden) draw(latest); }

function draw(found) {
  if (typeof Plotly === "undefined") return;            // the tables show the same data
  const { history } = found;
  drawnWidth = at("found").clientWidth;
  drawIntervals(found);
  if (!history.ends.length) return;
  for (const id of ["pulls", "rewards"]) {
    const names = history.arms.map(arm => arm.name);
    if (id === "pulls" && history.others.some(count => count > 0)) names.push("other arms");
    fill(at(id).previousElementSibling, names.map((name, i) => {
      const item = make("li");
      fill(item, swatch(i < history.arms.length ? i : -1), name);
      return item;
    }));
  }
  drawPulls(history);
  drawRewards(history);
}

function times({ begin, ends, arms, others }) {
  const last = ends[ends.length - 1];
  if (last - begin < 1) {                               // less than a second: count requests instead
    let sum = 0;
    const xs = [0, ...ends.map((_, i) => sum += others[i] + arms.reduce((all, arm) => all + arm.pulls[i], 0))];
    return { axis: { type: "linear", title: { text: "requests so far", standoff: 8 } }, xs };
  }
  const local = t => new Date((t - 60 * new Date(t * 1000).getTimezoneOffset()) * 1000).toISOString().slice(0, -1);
  return { axis: { type: "date", nticks: narrow.matches ? 4 : 10 }, xs: [begin, ...ends].map(local) };
}

function drawPulls(history) {
  const { axis, xs } = times(history);
  const sums = history.ends.map((_, i) => history.others[i] + history.arms.reduce((all, arm) => all + arm.pulls[i], 0));
  const rows = history.arms.map((arm, i) => [arm.name, arm.pulls, colour(i)]);
  if (history.others.some(count => count > 0)) rows.push(["other arms", history.others, colour(-1)]);
  const traces = rows.map(([name, pulls, color]) => {
    const shares = pulls.map((count, i) => sums[i] ? 100 * count / sums[i] : 0);
    return {
      x: xs, y: [shares[0], ...shares], stackgroup: "all", line: { shape: "vh", width: 0.5, color }, fillcolor: faint(color, 0.75),
      text: [0, ...shares.keys()].map(j => `${escaped(name)}: ${words(Number(shares[j].toPrecision(2)))} %`),
      hovertemplate: "%{text}<extra></extra>",
    };
  });
  picture("pulls", traces, { hovermode: "x", xaxis: axis, yaxis: { range: [0, 100], ticksuffix: " %" } });
}

function drawRewards(history) {
  const scale = symlog(history, history.arms.flatMap(arm => [...arm.low, ...arm.high]), 6);
  const { axis, xs } = times(history), ends = xs.slice(1), bands = [], lines = [];
  history.arms.forEach((arm, i) => {
    const x = [], y = [];
    for (const run of runs(arm.middle)) {
      const back = [...run].reverse();
      x.push(...run.map(j => ends[j]), ...back.map(j => ends[j]), null);
      y.push(...run.map(j => scale.to(arm.high[j])), ...back.map(j => scale.to(arm.low[j])), null);
    }
    bands.push({ x, y, fill: "toself", mode: "none", fillcolor: faint(colour(i), 0.16), hoverinfo: "skip" });
    lines.push({
      x: ends, y: arm.middle.map(value => value === null ? null : scale.to(value)), mode: "lines+markers",
      line: { color: colour(i), width: 2, dash: DASHES[i % 3] }, marker: { color: colour(i), size: 5 },
      text: arm.middle.map((value, j) => `${escaped(arm.name)}: ${words(value)}<br>${words(arm.low[j])} to ${words(arm.high[j])}`),
      hovertemplate: "%{text}<extra></extra>",
    });
  });
  picture("rewards", [...bands, ...lines], {
    xaxis: { ...axis, ...(ends.length > 1 ? { range: [ends[0], ends[ends.length - 1]] } : {}) },
    yaxis: marks(scale),
  });
}

function drawIntervals(found) {
  const arms = found.arms.filter(arm => arm.here && arm.estimate !== null).slice(0, 12).reverse();
  at("intervals").hidden = !arms.length;
  if (!arms.length) return;
  const scale = symlog(found.history, arms.flatMap(arm => [arm.low, arm.estimate, arm.high]), narrow.matches ? 4 : 7);
  const traces = arms.map(arm => {
    const color = colour(slot(found.history, arm.name)), x = scale.to(arm.estimate);
    const low = arm.low ?? arm.estimate, high = arm.high ?? arm.estimate;   // there may be no interval
    return {
      x: [x], y: [arm.name], mode: "markers", marker: { color, size: 11 },
      error_x: { type: "data", symmetric: false, array: [scale.to(high) - x], arrayminus: [x - scale.to(low)], color, thickness: 2.5, width: 6,
        visible: arm.low !== null },
      text: [`${escaped(arm.name)}: ${words(arm.estimate)}<br>${arm.low === null ? "no interval" : `${words(low)} to ${words(high)}`}`],
      hovertemplate: "%{text}<extra></extra>",
    };
  });
  picture("intervals", traces, {
    rems: 3.4 + 2.1 * arms.length,
    xaxis: marks(scale),
    yaxis: { type: "category", tickvals: arms.map(arm => arm.name), ticktext: arms.map(arm => escaped(arm.name)), showgrid: false,
      range: [-0.6, arms.length - 0.4] },
  });
}

function marks({ ticks, to, range }) { return { tickvals: ticks.map(to), ticktext: ticks.map(words), range, zeroline: false }; }

function runs(values) {
  const found = [];
  values.forEach((value, i) => {
    if (value === null) return;
    if (i && values[i - 1] !== null) found[found.length - 1].push(i); else found.push([i]);
  });
  return found;
}

function faint(color, strength) {
  const part = i => parseInt(color.slice(i, i + 2), 16);
  return `rgba(${part(1)},${part(3)},${part(5)},${strength})`;
}

// A scale that is linear near the centre and logarithmic far from it: asinh((x − centre)/spread).
function symlog({ centre, spread }, values, tall) {
  const finite = values.filter(x => x !== null).map(Number).filter(Number.isFinite);
  centre = Number(centre ?? 0);
  spread = Number(spread) || Math.max(...finite.map(x => Math.abs(x - centre)), 0) || 1;
  const bare = x => Math.asinh((x - centre) / spread), back = y => centre + spread * Math.sinh(y);
  let low = Math.min(...finite.map(bare)), high = Math.max(...finite.map(bare));
  if (!(high - low > 1e-6)) [low, high] = [(low || 0) - 1, (high || 0) + 1];
  const pad = 0.07 * (high - low);
  low -= pad; high += pad;
  const step = (high - low) / tall, ticks = [];
  for (let y = low + step / 2; y < high; y += step) {
    const tick = roundest(back(y - 0.4 * step), back(y + 0.4 * step));
    if (Number.isFinite(tick)) ticks.push(tick);
  }
  return { to: x => Math.min(high, Math.max(low, bare(Number(x)))), ticks, range: [low, high] };
}

function roundest(low, high) {
  if (low <= 0 && high >= 0) return 0;
  for (let power = Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)))); power > -320; power -= 1)
    for (const times of [10, 5, 2]) {
      const size = times * 10 ** (power - 1), found = size * Math.ceil(low / size);
      if (found <= high) return Number(found.toPrecision(12));
    }
}

look();
