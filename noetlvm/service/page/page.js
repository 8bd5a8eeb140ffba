// The page of a server: executions, playbooks, and one execution live. It knows the API and nothing else, and writes
// every text as text, never as HTML.
"use strict";

const API = "/api/v1";
const REFRESH_MS = 2000;
const EVENTS_SHOWN = 300;
const TOKEN = "noetlvm-token";
const view = document.getElementById("view");
const notice = document.getElementById("notice");
let leaving = new AbortController();

// ---- elements

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter(child => child !== null));
  return made;
}

/** A table; the names of columns of numbers begin with `#`. */
function table(columns, rows) {
  const head = columns.map(name => element("th", { scope: "col", class: name.startsWith("#") && "number" },
    name.replace("#", "")));
  return element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows));
}

const cell = (...children) => element("td", {}, ...children);
const numeric = text => element("td", { class: "number" }, String(text));
const status = word => element("span", { class: `status ${word}` }, word);
const pretty = value => element("pre", {}, JSON.stringify(value, null, 2));
const moment = seconds => new Date(seconds * 1000).toLocaleString();
const link = id => element("a", { href: `#/executions/${encodeURIComponent(id)}` }, id.slice(0, 13));

function span(from, to) {
  const seconds = Math.max(0, (to ?? Date.now() / 1000) - from);
  return seconds < 100 ? `${seconds.toFixed(2)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

// ---- the API

async function request(path, options = {}) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(TOKEN) || ""}`, ...options.headers };
  const answer = await fetch(API + path, { signal: leaving.signal, ...options, headers });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  const error = new Error(problem.detail || `${answer.status} ${answer.statusText}`);
  error.status = answer.status;
  throw error;
}

const get = async path => (await request(path)).json();
const post = async (path, body) => (await request(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body),
})).json();

/** Run an action, and show its error if it has one. */
async function attempt(action) {
  try {
    notice.textContent = "";
    await action();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (error.status === 401) return showSignIn();
    notice.textContent = error.message;
  }
}

/** Run an action now and again, until the view is left. */
function repeat(action) {
  const signal = leaving.signal;
  const again = async () => {
    await attempt(action);
    if (!signal.aborted) setTimeout(() => signal.aborted || again(), REFRESH_MS);
  };
  again();
}

// ---- views

function showSignIn() {
  const field = element("input", { type: "password", autocomplete: "off", required: true, id: "token" });
  const form = element("form", { class: "card", onsubmit: event => {
    event.preventDefault();
    sessionStorage.setItem(TOKEN, field.value.trim());
    route();
  } },
  element("h2", {}, "A token, please"),
  element("p", { class: "soft" }, "`noetlvm token create --store STORE --scope read` makes one; add the scope `run` to ",
    "start and control executions. It stays in this tab."),
  element("label", {}, "Token", field), element("button", {}, "Sign in"));
  document.getElementById("leave").hidden = true;
  view.replaceChildren(form);
  field.focus();
}

function showExecutions() {
  const words = ["all", "running", "paused", "success", "failed", "cancelled"];
  const chosen = element("select", { "aria-label": "Status", onchange: () => attempt(load) },
    words.map(word => element("option", {}, word)));
  const rows = element("tbody");
  const more = element("button", { hidden: true, onclick: () => { pages += 1; attempt(load); } }, "Older");
  let pages = 1;
  async function load() {
    const found = [];
    let before = null;
    for (let page = 0; page < pages; page += 1) {
      const query = new URLSearchParams({ limit: 50 });
      if (chosen.value !== "all") query.set("status", chosen.value);
      if (before) query.set("before", before);
      const answer = await get(`/executions?${query}`);
      found.push(...answer.executions);
      before = answer.before;
      if (!before) break;
    }
    more.hidden = !before;
    rows.replaceChildren(...found.map(one => element("tr", {},
      cell(link(one.execution_id)), cell(one.path), cell(status(one.status)), cell(moment(one.started)),
      numeric(span(one.started, one.ended)), numeric(one.event_count))));
    if (!found.length) rows.replaceChildren(element("tr", {}, element("td", { colspan: 6, class: "soft" }, "none yet")));
  }
  const shown = table(["execution", "playbook", "status", "started", "#time", "#events"], []);
  shown.tBodies[0].replaceWith(rows);
  view.replaceChildren(element("div", { class: "bar" }, element("h2", { class: "grow" }, "Executions"), chosen), shown, more);
  repeat(load);
}

function showPlaybooks() {
  const shown = element("div");
  view.replaceChildren(element("h2", {}, "Playbooks"), shown);
  attempt(async () => {
    const found = [];
    let after = "";
    do {
      const answer = await get(`/playbooks?${new URLSearchParams({ after })}`);
      found.push(...answer.playbooks);
      after = answer.after;
    } while (after);
    const rows = found.map(one => element("tr", {},
      cell(one.path), numeric(one.version), cell(element("code", {}, one.bundle.slice(0, 16))), cell(moment(one.registered)),
      cell(element("button", { onclick: () => showStart(one) }, "Start…"))));
    shown.replaceChildren(rows.length ? table(["path", "#version", "bundle", "registered", ""], rows)
      : element("p", { class: "soft" }, "none yet: `noetlvm submit FILE` registers one"));
  });
}

function showStart(playbook) {
  const payload = element("textarea", { rows: 8, spellcheck: "false", id: "payload" }, "{}");
  view.replaceChildren(element("form", { class: "card", onsubmit: event => {
    event.preventDefault();
    attempt(async () => {
      const { path, version } = playbook;
      const started = await post("/executions", { path, version, payload: JSON.parse(payload.value) });
      location.hash = `#/executions/${started.execution_id}`;
    });
  } },
  element("h2", {}, `Start ${playbook.path}, version ${playbook.version}`),
  element("label", {}, "Payload, as JSON; it is merged over the workload", payload),
  element("button", {}, "Start")));
  payload.focus();
}

// ---- one execution

/** What the events of an execution say about its steps. */
class Runs {
  constructor() {
    this.runs = new Map();
    this.isOver = false;
  }

  take(event) {
    if (event.name === "playbook.processed") this.isOver = true;
    if (event.name === "execution.retried") this.isOver = false;
    const id = event.step_run_id;
    if (!id) return;
    const seconds = Date.parse(event.timestamp) / 1000;
    if (event.name === "step.scheduled" && !this.runs.has(id)) {
      this.runs.set(id, { number: id.slice(id.lastIndexOf("/") + 1), step: event.data.step, status: "running",
        began: seconds, ended: null, total: null, ok: 0, failed: 0 });
    }
    const run = this.runs.get(id);
    if (!run) return;
    const path = (event.iteration_id || "").slice(id.length + 1);
    if (event.name === "loop.started" && !path) run.total = event.data.total;
    if (event.name === "loop.iteration.done" && !path.includes(".")) run.ok += 1;
    const isFailure = event.name === "loop.iteration.failed" && !event.data.cancelled;
    if (isFailure && !path.includes(".")) run.failed += 1;
    if (["step.done", "loop.done", "step.failed"].includes(event.name) && !path) {
      run.status = event.name === "step.failed" ? "failed" : "done";
      run.ended = seconds;
    }
  }

  /** The worst that the runs of a step are: running, failed, done. */
  statusOf(step) {
    const found = [...this.runs.values()].filter(run => run.step === step).map(run => run.status);
    return ["running", "failed", "done"].find(word => found.includes(word));
  }

  rows() {
    return [...this.runs.values()].slice(-EVENTS_SHOWN).map(run => element("tr", {},
      numeric(run.number), cell(run.step), cell(status(run.status)), numeric(span(run.began, run.ended)),
      cell(run.total === null ? "" : `${run.ok} ok, ${run.failed} failed of ${run.total}`)));
  }
}

function eventRow(event) {
  const where = [event.iteration_id || event.step_run_id, event.task_label].filter(Boolean).join(" ")
    .replace(`${event.execution_id}/`, "");
  const data = JSON.stringify(event.data);
  return element("tr", {}, numeric(event.seq), cell(event.timestamp.slice(11, 23)), cell(event.name), cell(where),
    element("td", { class: "soft" }, data.length > 160 ? `${data.slice(0, 159)}…` : data));
}

/** Yield events as the server sends them; a lost connection continues after the last event. */
async function* follow(id, runs) {
  let last = 0;
  while (!runs.isOver) {
    let rest = "";
    try {
      const answer = await request(`/executions/${id}/events/live`, { headers: { "Last-Event-ID": String(last) } });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        const messages = (rest + part.value).split("\n\n");
        rest = messages.pop();
        for (const message of messages) {
          const data = message.split("\n").find(line => line.startsWith("data: "));
          if (!data) continue;
          const event = JSON.parse(data.slice(6));
          last = event.seq;
          yield event;
        }
      }
    } catch (error) {
      if (error.name === "AbortError" || error.status) throw error;
    }
    if (!runs.isOver) await new Promise(done => setTimeout(done, REFRESH_MS));
  }
}

function showExecution(id) {
  const path = `/executions/${encodeURIComponent(id)}`;
  const title = element("h2", { class: "grow" }, id);
  const buttons = element("span", { class: "bar" });
  const net = element("div", { class: "net" });
  const steps = element("tbody");
  const events = element("tbody");
  const ending = element("div");
  const stepTable = table(["#run", "step", "status", "#time", "iterations"], []);
  const eventTable = table(["#", "time", "event", "where", "data"], []);
  stepTable.tBodies[0].replaceWith(steps);
  eventTable.tBodies[0].replaceWith(events);
  view.replaceChildren(
    element("div", { class: "bar" }, title, buttons),
    element("div", { class: "split" },
      element("div", {}, stepTable, ending, element("h3", {}, "Events"), element("div", { class: "events" }, eventTable)),
      net));
  const runs = new Runs();
  const latest = [];
  let isDrawn = true;

  function draw() {
    isDrawn = true;
    steps.replaceChildren(...runs.rows());
    events.replaceChildren(...latest.map(eventRow));
    for (const box of net.querySelectorAll(".box[data-key]")) {
      box.classList.remove("is-running", "is-failed", "is-done");
      const word = runs.statusOf(box.dataset.key);
      if (word) box.classList.add(`is-${word}`);
    }
  }

  async function showHead() {
    const row = await get(path);
    title.replaceChildren(`${row.path} `, status(row.status), element("span", { class: "soft" },
      ` ${span(row.started, row.ended)}, ${row.event_count} events`));
    const actions = { running: ["pause", "cancel"], paused: ["resume", "cancel"], failed: ["retry"] }[row.status] || [];
    buttons.replaceChildren(...actions.map(word => element("button", { onclick: () => attempt(async () => {
      const answer = await post(`${path}/${word}`);
      if (word === "retry") location.hash = `#/executions/${answer.execution_id}`;
      else await showHead();
    }) }, word[0].toUpperCase() + word.slice(1))));
    return row;
  }

  async function showEnding() {
    await showHead();
    const answer = await get(`${path}/ending`);
    const parts = { Failures: answer.failures, Result: answer.result, "ctx": answer.ctx };
    ending.replaceChildren(...Object.entries(parts)
      .filter(([, value]) => value !== null && Object.keys(value).length !== 0)
      .flatMap(([name, value]) => [element("h3", {}, name), pretty(value)]));
  }

  async function showNet(row) {
    const query = new URLSearchParams({ path: row.path });
    const text = await (await request(`/bundles/${row.bundle}/picture?${query}`)).text();
    net.replaceChildren(document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true));
    draw();
  }

  attempt(async () => {
    const row = await showHead();
    const picture = attempt(() => showNet(row));
    repeat(async () => { if (!runs.isOver) await showHead(); });
    for await (const event of follow(row.execution_id, runs)) {
      runs.take(event);
      latest.unshift(event);
      if (latest.length > EVENTS_SHOWN) latest.pop();
      if (isDrawn) {
        isDrawn = false;
        setTimeout(draw, 100);
      }
    }
    await Promise.all([showEnding(), picture]);
    draw();
    document.documentElement.dataset.ready = "ended";
  });
}

// ---- which view

const VIEWS = [
  [/^#\/executions\/(.+)$/, match => showExecution(decodeURIComponent(match[1]))],
  [/^#\/playbooks$/, showPlaybooks],
  [/^/, showExecutions],
];

function route() {
  const token = /^#token=(.+)$/.exec(location.hash);
  if (token) {  // as `noetlvm dev` prints it: a fragment is not sent to the server
    sessionStorage.setItem(TOKEN, decodeURIComponent(token[1]));
    history.replaceState(null, "", "#/executions");
  }
  leaving.abort();
  leaving = new AbortController();
  delete document.documentElement.dataset.ready;
  notice.textContent = "";
  if (!sessionStorage.getItem(TOKEN)) return showSignIn();
  document.getElementById("leave").hidden = false;
  const hash = location.hash || "#/executions";
  for (const anchor of document.querySelectorAll("nav a")) {
    if (hash.startsWith(anchor.getAttribute("href"))) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  for (const [pattern, show] of VIEWS) {
    const match = pattern.exec(hash);
    if (match) return show(match);
  }
}

document.getElementById("leave").addEventListener("click", () => {
  sessionStorage.removeItem(TOKEN);
  route();
});
addEventListener("hashchange", route);
route();
