"use strict";

// Charts as SVG. Colours are classes of page.css, so that they follow the light and the dark scheme.

const HUES = ["blue", "orange", "green", "purple", "yellow", "red", "grey"];
const WORDS = { violet: "purple", pink: "purple", magenta: "purple", gold: "yellow", brown: "yellow", teal: "green", lime: "green", navy: "blue",
  cyan: "blue", crimson: "red", black: "grey", white: "grey", silver: "grey", gray: "grey" };
const DASHES = ["", "7 4", "2 4"];
const TICK = 13;                                        // pixels: height of a label
const PEN = document.createElement("canvas").getContext("2d");
PEN.font = `${TICK}px system-ui, sans-serif`;
const wide = text => PEN.measureText(text).width;

// An arm that is named after a colour has this colour, and no other arm has it.
function hues(names) {
  const own = name => {
    const found = name.toLowerCase().match(/[a-z]+/g)?.map(word => WORDS[word] ?? word).find(word => HUES.includes(word));
    return found ?? null;
  };
  const wanted = names.map(own), free = HUES.filter(hue => !wanted.includes(hue)), taken = new Set();
  return names.map((_, i) => {
    const mine = wanted[i] && !taken.has(wanted[i]) ? wanted[i] : free.shift() ?? "grey";
    taken.add(mine);
    return mine;
  });
}

function draw(tag, attributes, ...inside) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

function hint(text) { return draw("title", {}, text); }

// x and y: { to: value → 0…1, ticks: [value], label: value → text, title }; inside(X, Y) draws in pixels.
function chart(id, { height, x, y, zero, inside }) {
  const place = at(id), width = Math.floor(place.getBoundingClientRect().width);
  if (!width) return;
  const left = 10 + Math.max(2 * TICK, ...y.ticks.map(tick => wide(y.label(tick)))), right = 14;
  const bottom = 24 + (x.title ? 18 : 0), top = 8;
  const X = value => left + x.to(value) * (width - left - right);
  const Y = value => top + (1 - y.to(value)) * (height - top - bottom);
  const marks = draw("g", { class: "marks" });
  for (const tick of y.ticks)
    marks.append(draw("line", { x1: left, x2: width - right, y1: Y(tick), y2: Y(tick), class: y.bare ? "none" : "grid" }),
      draw("text", { x: left - 6, y: Y(tick) + 4, "text-anchor": "end", class: "ytick" }, y.label(tick)));
  const shown = x.ticks.filter((tick, i, all) => {        // leave out labels that would overlap
    const half = wide(x.label(tick)) / 2;
    return X(tick) - half >= 0 && X(tick) + half <= width && (i === 0 || x.bare || X(tick) - X(all[i - 1]) >= 0);
  });
  let last = -Infinity;
  for (const tick of shown) {
    const half = wide(x.label(tick)) / 2;
    if (X(tick) - half < last + 8) continue;
    last = X(tick) + half;
    marks.append(draw("line", { x1: X(tick), x2: X(tick), y1: top, y2: height - bottom, class: "grid" }),
      draw("text", { x: X(tick), y: height - bottom + 17, "text-anchor": "middle", class: "xtick" }, x.label(tick)));
  }
  if (x.title) marks.append(draw("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle", class: "axis" }, x.title));
  if (zero === "y" && y.holds(0)) marks.append(draw("line", { x1: left, x2: width - right, y1: Y(0), y2: Y(0), class: "zero" }));
  if (zero === "x" && x.holds(0)) marks.append(draw("line", { x1: X(0), x2: X(0), y1: top, y2: height - bottom, class: "zero" }));
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, marks, draw("g", { class: "drawn" }, ...inside(X, Y)));
  fill(place, svg);
}

function line(points, hue, dash = 0) {
  return draw("polyline", { points: points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "), class: `line hue-${hue}`,
    "stroke-dasharray": DASHES[dash % 3] });
}

function area(points, hue, kind) {
  return draw("polygon", { points: points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "), class: `${kind} hue-${hue}` });
}

function dot(x, y, hue, text) { return draw("circle", { cx: x, cy: y, r: 3, class: `dot hue-${hue}` }, hint(text)); }

// ---- scales

function linear(values, tall, within = [-Infinity, Infinity]) {
  const finite = values.filter(value => value !== null).map(Number).filter(Number.isFinite);
  let low = Math.min(...finite, Infinity), high = Math.max(...finite, -Infinity);
  if (!(high - low > 1e-12 * Math.max(Math.abs(high), Math.abs(low)))) [low, high] = [(Number.isFinite(low) ? low : 0) - 1, (Number.isFinite(high) ? high : 0) + 1];
  const pad = 0.06 * (high - low);
  low = Math.max(low - pad, Math.min(within[0], low)); high = Math.min(high + pad, Math.max(within[1], high));
  const rough = (high - low) / tall, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(times => times * power >= rough);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-12); i += 1) ticks.push(Number((i * step).toPrecision(12)));
  return { to: value => (Math.min(high, Math.max(low, Number(value))) - low) / (high - low), ticks, label: words, even: true,
    holds: value => low <= value && value <= high };
}

// Linear near the centre and logarithmic far from it: asinh((x − centre)/spread).
function symlog({ centre, spread }, values, tall) {
  const finite = values.filter(value => value !== null).map(Number).filter(Number.isFinite);
  centre = Number(centre ?? 0);
  spread = Number(spread) || Math.max(...finite.map(value => Math.abs(value - centre)), 0) || 1;
  const bare = value => Math.asinh((value - centre) / spread), back = place => centre + spread * Math.sinh(place);
  let low = Math.min(...finite.map(bare)), high = Math.max(...finite.map(bare));
  if (high - low < 4) return linear(values, tall);      // it would look even
  const pad = 0.07 * (high - low);
  low -= pad; high += pad;
  const step = (high - low) / tall, ticks = [];
  for (let place = low + step / 2; place < high; place += step) {
    const tick = roundest(back(place - 0.4 * step), back(place + 0.4 * step));
    if (Number.isFinite(tick)) ticks.push(tick);
  }
  return { to: value => (Math.min(high, Math.max(low, bare(Number(value)))) - low) / (high - low), ticks, label: words, even: false,
    holds: value => low <= bare(value) && bare(value) <= high };
}

function roundest(low, high) {
  if (low <= 0 && high >= 0) return 0;
  for (let power = Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)))); power > -320; power -= 1)
    for (const times of [10, 5, 2]) {
      const size = times * 10 ** (power - 1), found = size * Math.ceil(low / size);
      if (found <= high) return Number(found.toPrecision(12));
    }
}

const STEPS = [1, 5, 15, 60, 300, 900, 3600, 10800, 43200, 86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000];

// Seconds since 1970; short spans are labelled with the time of day, longer ones with the date.
function clockScale(first, last, narrow) {
  const span = Math.max(last - first, 1e-3), most = narrow ? 4 : 8;
  const step = STEPS.find(one => span / one <= most) ?? span / most, ticks = [];
  const shift = 60 * new Date(first * 1000).getTimezoneOffset();
  for (let tick = Math.ceil((first - shift) / step) * step + shift; tick <= last; tick += step) ticks.push(tick);
  const local = new Intl.DateTimeFormat("en-GB", step < 60 ? { hour: "2-digit", minute: "2-digit", second: "2-digit" }
    : step < 86400 ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" });
  return { to: value => (value - first) / span, ticks, label: tick => local.format(new Date(tick * 1000)), holds: () => false };
}

// ---- the charts of an experiment

function times({ begin, ends, arms, others }) {
  const last = ends[ends.length - 1];
  if (last - begin >= 1) return { x: clockScale(begin, last, narrow.matches), xs: [begin, ...ends] };
  let sum = 0;                                          // less than a second: count requests instead
  const xs = [0, ...ends.map((_, i) => sum += others[i] + arms.reduce((all, arm) => all + arm.pulls[i], 0))];
  return { x: { ...linear(xs, 5), to: value => value / (sum || 1), title: "requests so far" }, xs };
}

function drawTrail({ pay, costs }) {
  at("trail-figure").hidden = pay.trail.length < 2;
  if (pay.trail.length < 2) return;
  const sign = costs ? -1 : 1;
  const points = pay.trail.map(([time, value, low, high]) => [time, sign * value, ...[sign * low, sign * high].sort((a, b) => a - b)]);
  const late = points.slice(-Math.ceil(0.75 * points.length));   // the first intervals are very wide
  const x = clockScale(points[0][0], points[points.length - 1][0], narrow.matches);
  const y = linear(late.flatMap(([, ...rest]) => rest).concat(0), 5);
  chart("trail", { height: 210, x, y, zero: "y", inside: (X, Y) => [
    area([...points.map(([t,, , high]) => [X(t), Y(high)]), ...points.toReversed().map(([t,, low]) => [X(t), Y(low)])], "ink", "band"),
    line(points.map(([t, value]) => [X(t), Y(value)]), "ink"),
    ...points.map(([t, value, low, high]) => dot(X(t), Y(value), "ink", `${moment(t)}: ${words(value)} (${words(low)} to ${words(high)})`)),
  ] });
}

function drawIntervals(found) {
  const arms = found.arms.filter(arm => arm.here && arm.estimate !== null).slice(0, 12).reverse();
  at("intervals").hidden = !arms.length;
  if (!arms.length) return;
  const values = arms.flatMap(arm => [arm.low, arm.estimate, arm.high]), tall = narrow.matches ? 4 : 7;
  const least = values.some(value => value !== null && Number(value) < 0) ? -Infinity : 0;
  const x = found.mean ? linear([...values, least === 0 ? 0 : null], tall, [least, Infinity]) : symlog(found.history, values, tall);
  const short = name => name.length > 24 ? `${name.slice(0, 23)}…` : name;
  const y = { to: i => (i + 0.5) / arms.length, ticks: arms.map((_, i) => i), label: i => short(arms[i].name), bare: true, holds: () => false };
  const title = x.even ? "" : "the axis is not even: logarithmic far from the centre";
  chart("intervals", { height: 46 + 34 * arms.length + (title ? 18 : 0), x: { ...x, title }, y, zero: found.mean ? "x" : null, inside: (X, Y) => arms.map((arm, i) => {
    const hue = colour(found, arm.name), parts = [hint(`${arm.name}: ${words(arm.estimate)}, ${arm.low === null ? "no interval" : `${words(arm.low)} to ${words(arm.high)}`}`)];
    if (arm.low !== null) {
      parts.push(draw("line", { x1: X(arm.low), x2: X(arm.high), y1: Y(i), y2: Y(i), class: `line hue-${hue}` }));
      for (const end of [arm.low, arm.high]) parts.push(draw("line", { x1: X(end), x2: X(end), y1: Y(i) - 6, y2: Y(i) + 6, class: `line hue-${hue}` }));
    }
    return draw("g", { class: "interval" }, ...parts, draw("circle", { cx: X(arm.estimate), cy: Y(i), r: 5.5, class: `dot hue-${hue}` }));
  }) });
}

function drawPulls(found) {
  const { history } = found, { x, xs } = times(history);
  const sums = history.ends.map((_, i) => history.others[i] + history.arms.reduce((all, arm) => all + arm.pulls[i], 0));
  const rows = history.arms.map(arm => [arm.name, arm.pulls, colour(found, arm.name)]);
  if (history.others.some(count => count > 0)) rows.push(["other arms", history.others, "soft"]);
  const base = sums.map(() => 0);
  const y = { to: value => value / 100, ticks: [0, 25, 50, 75, 100], label: value => `${value} %`, holds: () => false };
  chart("pulls", { height: 230, x, y, inside: (X, Y) => rows.map(([name, pulls, hue]) => {
    const below = [...base], shares = pulls.map((count, i) => sums[i] ? 100 * count / sums[i] : 0);
    shares.forEach((part, i) => base[i] += part);
    const edge = level => level.flatMap((value, i) => [[X(xs[i]), Y(value)], [X(xs[i + 1]), Y(value)]]);
    const made = area([...edge(base), ...edge(below).reverse()], hue, "part");
    made.append(hint(`${name}: ${words(Number(shares[shares.length - 1].toPrecision(2)))} % lately`));
    return made;
  }) });
}

function drawRewards(found) {
  const { history } = found, { x, xs } = times(history), ends = xs.slice(1);
  const values = history.arms.flatMap(arm => [...(arm.low ?? []), ...arm.middle, ...(arm.high ?? [])]);
  const least = values.some(value => value !== null && Number(value) < 0) ? -Infinity : 0;
  const y = found.mean ? linear([...values, least === 0 ? 0 : null], 5, [least, Infinity]) : symlog(history, values, 6);
  at("uneven").hidden = y.even;
  chart("rewards", { height: 250, x, y, inside: (X, Y) => history.arms.flatMap((arm, i) => {
    const hue = colour(found, arm.name);
    return runs(arm.middle).flatMap(run => [
      ...(arm.low ? [area([...run.map(j => [X(ends[j]), Y(arm.high[j])]), ...run.toReversed().map(j => [X(ends[j]), Y(arm.low[j])])], hue, "band")] : []),
      line(run.map(j => [X(ends[j]), Y(arm.middle[j])]), hue, i),
      ...run.map(j => dot(X(ends[j]), Y(arm.middle[j]), hue, `${arm.name}: ${words(arm.middle[j])}${arm.low ? `, ${words(arm.low[j])} to ${words(arm.high[j])}` : ""}`)),
    ]);
  }) });
}

function runs(values) {
  const found = [];
  values.forEach((value, i) => {
    if (value === null) return;
    if (i && values[i - 1] !== null) found[found.length - 1].push(i); else found.push([i]);
  });
  return found;
}
