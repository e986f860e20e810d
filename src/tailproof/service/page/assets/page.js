"use strict";

const EVERY = 3000, SLOWEST = 15000;                    // milliseconds between refreshes
const READING = 300;                                    // while the service still reads the journal
const STALE = 90;                                       // seconds
const REALLY = 6000;                                     // milliseconds in which a second click confirms
const narrow = matchMedia("(max-width: 34rem)");
const at = id => document.getElementById(id);

let timer = 0, failures = 0, palette = [], since = null, lastWords = {}, shown = "", shownList = "", latest = null, controller = null, drawnWidth = 0;

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
  timer = setTimeout(look, summary?.read < 1 ? READING : Math.min(SLOWEST, EVERY * 2 ** Math.min(failures, 3)));
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
  setText("goal", !known ? "" : `Goal: ${found.aim_words}. ${meaning(found)} ${exploration(found)}`);
  setText("recipe", found.recipe ? `Recipe: ${found.recipe}` : "");
  const fixed = found.state?.fixed;
  at("state").hidden = !fixed;
  if (fixed) setText("state", `${fixed.why === "stop" ? "Stopped" : "Paused"}: every request gets ${fixed.arm}.`);
  if (!asked) return known && showEmpty(found);
  if (found.read === 1) {
    const before = lastWords[found.name];
    if (before !== undefined && before !== found.lead.words) announce(`${found.name}: ${found.lead.words}`);
    lastWords[found.name] = found.lead.words;
  }
  palette = hues(found.history.arms.map(arm => arm.name));
  showPay(found);
  showLead(found);
  setText("exploring", found.exploring.words);
  at("exploring-details").hidden = !found.exploring.how;
  setText("exploring-how", found.exploring.how);
  showSound(found);
  for (const id of ["pulls-section", "rewards-section"]) at(id).hidden = !found.history.ends.length;
  showTables(found);
  showActs(found);
  latest = found;
  drawAll(found);
}

function exploration({ explore, control, floor }) {
  const parts = [explore ? `${words(100 * explore)} % of decisions are random.` : "Exploration is up to the policy."];
  if (floor) parts.push(`Every arm gets at least ${words(100 * floor)} %.`);
  if (control) parts.push(`${words(100 * control.share)} % of requests are the control group and get ${control.arm}.`);
  return parts.join(" ");
}

function showPay({ pay, costs, aim, mean, control, name, customers }) {
  const kinds = { paid: ["sure", "it paid"], cost: ["bad", "it did not pay"], unsure: ["", "not sure yet"], early: ["early", "too early"], none: ["early", "no control group"] };
  const [kind, text] = kinds[pay.verdict];
  at("pay-badge").className = `badge ${kind}`;
  setText("pay-badge", text);
  setText("pay-words", pay.words);
  setText("pay-how", pay.how);
  const noun = customers.units ? "customer" : "request", each = mean ? `per ${noun}` : `share above the control's ${level(aim)}`, range = ([value, low, high], unit = "") => [value === null ? "–" : `${words(value)}${unit}`,
    value === null ? "" : `${words(low)} to ${words(high)}${unit}`];
  fill(at("gains"), pay.rows.map(row => [make("h4", `Against ${row.name}`), cards([
    [`${costs ? "Saved" : "More"}, ${each}`, ...range(row.gain.map(rounded))],
    ...(row.percent[0] === null ? [] : [[`${costs ? "Saved" : "More"}, in %`, ...range(row.percent.map(rounded), " %")]]),
    ...(mean ? [[`${costs ? "Saved" : "More"}, in all`, ...range(row.total.map(rounded))]] : []),
    [`Rule, ${each}`, words(rounded(row.rule)), `other: ${words(rounded(row.other))}`],
    ...(mean && row.beyond ? [["Without the cap", words(rounded(row.uncapped)), `${each}; ${whole.format(row.beyond)} ${noun}s are above the cap`]] : []),
    [`${noun[0].toUpperCase()}${noun.slice(1)}s`, whole.format(row.requests), "that this is from"],
  ])]).flat());
  const gained = mean ? `${costs ? "Saved" : "Earned"} ${each}, beyond` : `Share of rewards ${costs ? "not above" : "above"} the control's ${level(aim)}, beyond the share of`;
  setText("trail-words", `${gained} ${control ? "the control group" : "an even split"}, so far, with its interval; above the line it pays.`);
  const rules = [control ? `always:${control.arm}` : "always:ARM", "even"];
  setText("judge", `tailproof judge journals/${name}.db --aim '${aim}' \\\n  ${rules.map(rule => `--rule '${rule}'`).join(" ")}`);
  setText("calibrate", `tailproof calibrate journals/${name}.db`);
}

function level(aim) { return aim.replace(/^quantile\((.*)\)$/, "$1-quantile"); }

function rounded(x) { return x === null || !Number.isFinite(Number(x)) ? x : Number(Number(x).toPrecision(3)); }

function cards(rows, list = make("dl")) {
  fill(list, rows.map(([name, value, more]) => {
    const group = make("div"), shown = make("dd", value);
    shown.append(make("small", more));
    fill(group, make("dt", name), shown);
    return group;
  }));
  return list;
}

function showSound({ sound, tickets, outcomes, silence, notes, ignored }) {
  at("sound-badge").className = `badge ${sound.fine ? "sure" : "bad"}`;
  setText("sound-badge", sound.fine ? "sound" : "look");
  setText("sound", sound.words);
  showTickets({ tickets, outcomes, silence, ignored });
  table("checks", "Checks", ["check", "result", "found"], sound.checks.map(one => [one.name, one.fine ? "fine" : "look", one.words]));
  for (const row of at("checks").tBodies[0].rows) {
    row.cells[1].className = row.cells[1].innerText === "fine" ? "good" : "bad";
    row.cells[2].className = "";
  }
  for (const head of at("checks").tHead.rows[0].cells) head.className = "";
  at("notes-details").hidden = !notes.length;
  fill(at("notes"), notes.map(note => make("li", `${moment(note.at)}: ${note.kind} ${Object.entries(note.text).map(([key, value]) => `${key} ${value}`).join(", ")}`)));
}

// ---- what can be done; the offline report has none of it

function showActs({ arms, state }) {
  at("acts").hidden = offline !== null;
  const list = at("arm"), names = arms.filter(arm => arm.here && !state.dropped.includes(arm.name)).map(arm => arm.name);
  if (JSON.stringify([...list.options].map(one => one.value)) !== JSON.stringify(names)) {
    const before = list.value;
    fill(list, names.map(name => make("option", name, { value: name })));
    if (names.includes(before)) list.value = before;
  }
  document.querySelector("[data-act=resume]").hidden = !state.fixed;
}

async function send(path, init = {}) {
  const token = sessionStorage.getItem("token"), headers = { ...init.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(path, { ...init, headers });
  if (answer.status === 401) { askForToken(); throw new Error("the token is missing"); }
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? `the service answered ${answer.status}`);
  return answer;
}

at("export").addEventListener("click", async () => {
  setText("act-words", "Exporting…");
  try {
    const file = await (await send(`/experiments/${latest.name}/log`)).blob();
    const link = make("a", undefined, { href: URL.createObjectURL(file), download: `${latest.name}.csv` });
    link.click();
    URL.revokeObjectURL(link.href);
    setText("act-words", `Exported ${latest.name}.csv.`);
  } catch (error) { setText("act-words", `Not exported: ${error.message}`); }
});

for (const button of document.querySelectorAll("[data-act]")) button.addEventListener("click", async () => {
  const act = button.dataset.act, arm = at("arm").value;
  if (!button.classList.contains("sure")) {             // a first click only asks
    const before = button.textContent;
    button.classList.add("sure");
    button.textContent = act === "resume" ? "Really resume?" : `Really ${act} ${act === "drop" ? "" : "with "}${arm}?`;
    button.timer = setTimeout(() => { button.classList.remove("sure"); button.textContent = before; }, REALLY);
    button.before = before;
    return;
  }
  clearTimeout(button.timer);
  button.classList.remove("sure");
  button.textContent = button.before;
  try {
    await send(`/experiments/${latest.name}/${act}`, { method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify(act === "resume" ? {} : { arm }) });
    setText("act-words", "Written to the journal.");
    look();
  } catch (error) { setText("act-words", `Not done: ${error.message}`); }
});

function meaning({ wait, silence, rewards }) {
  const what = rewards === "sum" ? "All rewards count that come" : "The first reward counts if it comes", until = span(wait);
  return silence === null ? `${what} within ${until}; without one, a request counts as lost.`
    : `${what} within ${until}; without one, a request has the reward ${words(silence)}.`;
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
  showArms(found);
  at("more-arms").hidden = !found.more_arms;
  setText("more-arms", `and ${whole.format(found.more_arms)} more`);
}

// Visits, customers, conversion, basket, revenue of each customer, and the lift over the control.
function showArms(found) {
  const { mean, control, customers, aim, costs } = found, compared = found.arms.some(arm => arm.lift);
  const per = customers.units ? "customer" : "visit", capped = aim.startsWith("capped") ? ", capped" : "";
  const value = found.weighted ? `if shown alone, per ${per}` : costs ? `cost per ${per}${capped}` : capped ? `capped, per ${per}` : `mean per ${per}`;
  const money = mean && !costs, percent = x => x === null ? "–" : `${words(rounded(100 * x))} %`;
  const columns = [
    ["visits", arm => whole.format(arm.pulls)],
    ...(customers.units ? [["customers", arm => whole.format(arm.customers)]] : []),
    ...(money ? [["conversion", arm => percent(arm.conversion)], ["basket", arm => words(rounded(arm.basket))],
      [`revenue per ${per}`, arm => words(rounded(arm.per_customer))]] : []),
    [mean ? value : level(aim), arm => [words(rounded(arm.estimate)),
      arm.low === null ? "" : `${words(rounded(arm.low))} to ${words(rounded(arm.high))}`]],
    ...(compared ? [[`lift over ${control.arm}${capped}`, arm => arm.name === control.arm ? "control" : !arm.lift ? "–"
      : lifted(arm.lift)]] : []),
  ];
  stacked("arms", ["arm", ...columns.map(([name]) => name)], found.arms.map(arm => {
    const name = make("th", undefined, { scope: "row" }), drawn = slot(found.history, arm.name);
    if (drawn >= 0) name.append(swatch(found, drawn));
    name.append(arm.here ? arm.name : `${arm.name} (no longer offered)`);
    return [arm.here, name, ...columns.map(([, text]) => text(arm))];
  }));
  setText("customers", customers.words);
  stacked("counts", ["arm", "requests", "rewards", "pending", "without reward", "late (sum)"], found.arms.map(arm => [arm.here,
    make("th", arm.name, { scope: "row" }), ...["pulls", "rewards", "pending", "missing"].map(key => whole.format(arm[key])),
    `${whole.format(arm.late)} (${words(arm.late_sum)})`]));
}

function lifted({ gain, percent }) {
  const [value, low, high] = gain.map(rounded), share = percent[0] === null ? "" : ` (${plus(rounded(percent[0]))} %)`;
  return [`${plus(value)}${share}`, `${plus(low)} to ${plus(high)}`];
}

function plus(x) { return `${Number(x) > 0 ? "+" : ""}${words(x)}`; }

// A table whose rows become cards on a narrow screen: each cell has the name of its column with it.
function stacked(id, heads, rows) {
  const place = at(id), line = make("tr");
  fill(line, heads.map((text, i) => make("th", text, { scope: "col", ...(i ? { class: "n" } : {}) })));
  const head = place.tHead ?? place.createTHead(), body = place.tBodies[0] ?? place.createTBody();
  fill(head, line);
  fill(body, rows.map(([here, name, ...cells]) => {
    const row = make("tr");
    if (!here) row.className = "gone";
    fill(row, name, cells.map((text, i) => {
      const cell = make("td", undefined, { class: "n", "data-name": heads[i + 1] }), [value, more] = [text].flat();
      fill(cell, make("span", value), more ? make("small", more) : []);
      return cell;
    }));
    return row;
  }));
}

function showTickets({ tickets, outcomes, silence, ignored }) {
  const rows = [
    ["Requests", tickets.asked, `${whole.format(outcomes)} have an outcome`],
    ["Rewards", tickets.rewards, "came in time"],
    ["Pending", tickets.pending, "their time is not over; rewards they brought are kept"],
    silence === null ? ["Lost", tickets.lost, share(tickets.lost, tickets.asked)]
      : ["Silent", tickets.silent, `no reward in time, so ${words(silence)}`],
    ["Late", tickets.late, `came too late and were not learned; ${words(tickets.late_sum)} in all`],
    ...[["unknown", "Unknown", "named a ticket that was never asked for"], ["second", "Second", "came for a ticket that already had another reward"],
      ["repeated", "Repeated", "were told again, and counted once"]].filter(([why]) => ignored[why])
      .map(([why, name, what]) => [name, ignored[why][0], `${what}; ${words(rounded(ignored[why][1]))} in all`]),
    ...(tickets.cancelled ? [["Cancelled", tickets.cancelled, "nobody waited for the answer"]] : []),
  ];
  cards(rows.map(([name, count, more]) => [name, whole.format(count), more]), at("tickets"));
}

function showTables(found) {
  const { history } = found, times = history.ends.map(moment), names = history.arms.map(arm => arm.name);
  const others = history.others.some(count => count > 0);
  table("pulls-table", "Requests that got each arm, by period", ["until", ...names, ...(others ? ["other arms"] : [])],
    times.map((time, i) => [time, ...history.arms.map(arm => whole.format(arm.pulls[i])),
      ...(others ? [whole.format(history.others[i])] : [])]));
  const what = found.mean ? "The mean reward of a request, capped" : found.aim === "median" ? "The median and the middle 80 % of rewards" : `The ${level(found.aim)} of rewards`;
  setText("rewards-words", `${what}, in each period.`);
  table("rewards-table", what, ["until", ...names],
    times.map((time, i) => [time, ...history.arms.map(arm => arm.middle[i] === null ? "–"
      : arm.low ? `${words(arm.middle[i])} (${words(arm.low[i])} to ${words(arm.high[i])})` : words(arm.middle[i]))]));
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

// ---- charts

function slot(history, name) { return history.arms.findIndex(arm => arm.name === name); }
function colour({ history }, name) { return palette[slot(history, name)] ?? "soft"; }

function swatch(found, i) {
  const hue = i < 0 ? "soft" : palette[i];
  return make("span", undefined, { class: `swatch hue-${hue} dash-${Math.max(i, 0) % 3}`, "aria-hidden": "true" });
}

function redraw() { if (latest && !at("found").hidden) drawAll(latest); }

function drawAll(found) {
  const { history } = found;
  drawnWidth = at("found").clientWidth;
  drawTrail(found);
  drawIntervals(found);
  if (!history.ends.length) return;
  for (const id of ["pulls", "rewards"]) {
    const names = history.arms.map(arm => arm.name);
    if (id === "pulls" && history.others.some(count => count > 0)) names.push("other arms");
    fill(at(id).previousElementSibling, names.map((name, i) => {
      const item = make("li");
      fill(item, swatch(found, i < history.arms.length ? i : -1), name);
      return item;
    }));
  }
  drawPulls(found);
  drawRewards(found);
}

// ---- the start: a report has its data with it, the page asks for them again and again

const embedded = document.getElementById("data"), offline = embedded ? JSON.parse(embedded.textContent) : null;
if (offline) {
  setText("connection-words", `As of ${moment(offline.at)}`);
  show({ ...offline, now: offline.at });
} else {
  document.addEventListener("visibilitychange", look);
  addEventListener("online", look);
  addEventListener("hashchange", () => look().then(() => at("experiment").focus()));
  look();
}
