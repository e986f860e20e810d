// Ask and tell over HTTP, in browsers and in Node: one file without dependencies.
//
//     import { Client } from "./client.js";
//     const client = new Client("https://shop.example/bandit", { timeout: 200, default: "red" });
//     const { ticket, arm } = await client.ask("checkout", ["red", "blue"]);
//     await client.tell("checkout", ticket, 12.5);
//
// A call takes at most `timeout` milliseconds, with all retries. With a `default` no call rejects
// for what goes wrong on the way or in the service: `ask` gives the default arm, with `default`
// true and a ticket that the service does not know, and `tell` gives the status "failed" and may be
// repeated. The reason goes to `log`, the same one once a minute. After 5 failed calls in a row
// there is one try a second later, then after 2, 4, … 30 seconds; calls in between fail at once.

const FAILURES = 5, PAUSE = 1000, LONGEST_PAUSE = 30000;
const AGAIN = new Set([408, 429, 500, 502, 503, 504]);
const MOST_ORPHANS = 1000, CANCELLED_AT_ONCE = 100, REPEAT = 60000, LONGEST_ANSWER = 1 << 16;

class Failure extends Error {
  constructor(text, alive = false) {
    super(text);
    this.alive = alive; // whether a service answered
  }
}

const sleep = (time) => new Promise((done) => setTimeout(done, time));

function understood(status, text, act, ticket) {
  let said = {};
  try {
    said = JSON.parse(text) ?? {};
  } catch { /* told below */ }
  const fits = typeof said[act === "ask" ? "arm" : "status"] === "string";
  if (status === 200 && fits && said.ticket === ticket) return said;
  if (typeof said.error === "string") throw new Failure(said.error, true);
  throw new Failure(`unexpected answer, status ${status}: is this a tailproof service?`);
}

// Read an answer, unless it is far longer than a service's: reading on could keep a timer waiting.
async function bounded(body) {
  if (body === null) return ""; // of a redirect
  const reader = body.getReader(), decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
    if (text.length > LONGEST_ANSWER) throw new Error("the answer is too long");
  }
}

export class Client {
  constructor(url, { token, timeout = 200, default: fallback, log = console.warn } = {}) {
    if (!(timeout > 0)) throw new TypeError(`timeout must be a number above 0, got ${timeout}`);
    Object.assign(this, { url: url.replace(/\/+$/, ""), timeout, fallback, log });
    this.headers = { "Content-Type": "application/json" };
    if (token !== undefined) this.headers.Authorization = `Bearer ${token}`;
    this.orphans = new Map();
    this.logged = { reason: "", at: -Infinity };
    this.close();
  }

  // Give an arm of `offer`: a list of names, or an object of names and features; by default the
  // experiment's own arms. The same `unit`, such as "user 7", gets the same arm.
  async ask(experiment, offer, ticket = newTicket(), unit) {
    try {
      const said = await this.call(experiment, "ask", { ticket, offer, unit });
      return { ...said, default: false };
    } catch (failure) {
      if (!(failure instanceof Failure) || this.fallback === undefined) throw failure;
      return { ticket: `default:${ticket}`.slice(0, 200), arm: this.fallback, default: true };
    }
  }

  // Give what happened to a reward of a ticket: kept, duplicate, late, unknown, cancelled or
  // failed. Rewards with different events add up where the experiment says so.
  async tell(experiment, ticket, reward, event) {
    if (typeof reward !== "number" || Number.isNaN(reward)) {
      throw new TypeError(`reward must be a number, got ${reward}`);
    }
    const value = Number.isFinite(reward) ? reward : String(reward);
    try {
      return (await this.call(experiment, "tell", { ticket, reward: value, event })).status;
    } catch (failure) {
      if (!(failure instanceof Failure) || this.fallback === undefined) throw failure;
      return "failed";
    }
  }

  async call(experiment, act, body) {
    if (this.failures >= FAILURES) {
      if (Date.now() < this.next) throw new Failure(`${this.url} keeps failing`);
      this.next = Date.now() + this.pause; // half-open: one try
    }
    const orphans = this.orphans.get(experiment) ?? new Set();
    this.orphans.set(experiment, orphans);
    orphans.delete(body.ticket);
    const cancel = [...orphans].slice(0, CANCELLED_AT_ONCE);
    try {
      const said = await this.answer(experiment, act, cancel.length ? { ...body, cancel } : body);
      this.answered(orphans, cancel);
      return said;
    } catch (failure) {
      if (failure.alive) {
        this.answered(orphans, cancel);
      } else {
        if (act === "ask") orphans.add(body.ticket);
        if (orphans.size > MOST_ORPHANS) orphans.delete(orphans.values().next().value);
        this.failed();
      }
      this.say(failure.message);
      throw failure;
    }
  }

  // Send a request until there is an answer or the time is up.
  async answer(experiment, act, body) {
    const path = `${this.url}/experiments/${encodeURIComponent(experiment)}/${act}`;
    const stop = new AbortController(), end = performance.now() + this.timeout;
    const timer = setTimeout(() => stop.abort(), this.timeout);
    const request = {
      method: "POST", headers: this.headers, body: JSON.stringify(body), redirect: "manual",
      signal: stop.signal,
    };
    let reason = "timed out";
    try {
      for (let pause = 10; ; pause *= 2) {
        try {
          const found = await fetch(path, request);
          const text = await bounded(found.body);
          if (!AGAIN.has(found.status)) return understood(found.status, text, act, body.ticket);
          reason = `status ${found.status}`;
        } catch (error) {
          if (error instanceof Failure) throw error;
          if (!stop.signal.aborted) reason = String(error);
        }
        const left = end - performance.now();
        await sleep(Math.max(0, Math.min(pause, left)));
        if (pause >= left) {
          throw new Failure(`no answer from ${this.url} within ${this.timeout} ms (${reason})`);
        }
      }
    } finally {
      clearTimeout(timer);
      stop.abort(); // an answer that was not read to its end
    }
  }

  answered(orphans, cancelled) {
    cancelled.forEach((ticket) => orphans.delete(ticket));
    if (this.failures >= FAILURES) this.log(`${this.url} answers again`);
    this.close();
  }

  failed() {
    this.failures += 1;
    if (this.failures > FAILURES) this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
    if (this.failures >= FAILURES) this.next = Date.now() + this.pause;
  }

  close() {
    Object.assign(this, { failures: 0, pause: PAUSE, next: 0 });
  }

  say(reason) {
    const now = Date.now();
    if (reason === this.logged.reason && now - this.logged.at < REPEAT) return;
    this.logged = { reason, at: now };
    this.log(reason);
  }
}

// `crypto.randomUUID` is missing on pages without TLS.
function newTicket() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
