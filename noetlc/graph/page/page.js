"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const stage = by("stage"), holder = by("picture"), root = document.documentElement;
  const first = holder.querySelector("svg");
  const state = { x: 0, y: 0, scale: 1, width: 0, height: 0, shown: "main", stored: null, file: null, picked: -1 };
  const least = 0.02, most = 4;

  // ---- moving about

  const svg = () => holder.querySelector("svg");

  function look() {
    const { clientWidth: w, clientHeight: h } = stage;
    svg().setAttribute("viewBox", `${state.x} ${state.y} ${w / state.scale} ${h / state.scale}`);
    by("zoom").textContent = `${Math.round(state.scale * 100)}%`;
    if (surveyed !== svg()) survey();
    place(frame, { x: state.x, y: state.y, width: w / state.scale, height: h / state.scale });
  }

  // ---- the overview of a net that cannot be read as a whole

  const overview = by("overview"), boxes = 3000;
  const make = (name) => document.createElementNS(first.namespaceURI, name);
  const frame = make("rect");
  let surveyed = null;
  frame.setAttribute("class", "frame");

  function place(element, area) {
    for (const [name, value] of Object.entries(area)) element.setAttribute(name, value);
    return element;
  }

  function survey() {
    surveyed = svg();
    const drawn = [...surveyed.querySelectorAll(".box")], { clientWidth: w, clientHeight: h } = stage;
    overview.hidden = Math.min(w / state.width, h / state.height) >= 0.55 || drawn.length > boxes;
    if (overview.hidden) return;
    const scale = Math.min(160 / state.width, 0.5 * h / state.height);
    const small = place(make("svg"), { width: state.width * scale, height: state.height * scale });
    small.setAttribute("viewBox", `${state.left} ${state.top} ${state.width} ${state.height}`);
    for (const box of drawn) {
      const { x, y, width, height } = box.getBBox();
      small.append(place(make("rect"), { x, y, width, height }));
    }
    small.append(frame);
    overview.replaceChildren(small);
  }

  overview.addEventListener("pointerdown", (event) => {
    event.stopPropagation();
    const area = overview.firstChild.getBoundingClientRect(), scale = area.width / state.width;
    state.x = state.left + (event.clientX - area.left) / scale - stage.clientWidth / state.scale / 2;
    state.y = state.top + (event.clientY - area.top) / scale - stage.clientHeight / state.scale / 2;
    look();
  });

  function measure(picture) {
    // The drawing says how large it is when it arrives; from then on its frame is the stage.
    const [x, y, w, h] = picture.dataset.frame.split(" ").map(Number);
    Object.assign(state, { left: x, top: y, width: w, height: h });
  }

  function adopt(picture) {
    if (!picture.dataset.frame) {
      picture.dataset.frame = picture.getAttribute("viewBox");
      picture.removeAttribute("width");
      picture.removeAttribute("height");
    }
    measure(picture);
  }

  function fit() {
    const { clientWidth: w, clientHeight: h } = stage;
    state.scale = Math.min(most, Math.max(least, Math.min(w / state.width, h / state.height, 1)));
    state.x = state.left - (w / state.scale - state.width) / 2;
    state.y = state.top - (h / state.scale - state.height) / 2;
    look();
  }

  function open() {
    // Whole if that can be read, else from where reading begins.
    fit();
    if (state.scale >= 0.55) return;
    state.scale = 0.9;
    const begin = svg().querySelector(".box");
    const { x, y, width } = begin.getBBox();
    state.x = x + width / 2 - stage.clientWidth / state.scale / 2;
    state.y = y - 24;
    look();
  }

  function zoom(factor, px = stage.clientWidth / 2, py = stage.clientHeight / 2) {
    const scale = Math.min(most, Math.max(least, state.scale * factor));
    state.x += px / state.scale - px / scale;
    state.y += py / state.scale - py / scale;
    state.scale = scale;
    look();
  }

  function pan(dx, dy) {
    state.x += dx / state.scale;
    state.y += dy / state.scale;
    look();
  }

  function bring(element) {
    const { x, y, width, height } = element.getBBox();
    if (state.scale < 0.45) state.scale = 0.9;
    const w = stage.clientWidth / state.scale, h = stage.clientHeight / state.scale;
    const inside = x > state.x + 10 && y > state.y + 10 && x + width < state.x + w - 10 && y + height < state.y + h - 10;
    if (!inside) {
      state.x = x + width / 2 - w / 2;
      state.y = y + height / 2 - h / 2;
    }
    look();
  }

  let drag = null;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button || event.target.closest("#ask, #keys")) return;
    drag = { x: event.clientX, y: event.clientY, moved: false };
  });
  window.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    drag = { x: event.clientX, y: event.clientY, moved: true };
    stage.classList.add("dragging");
    pan(-dx, -dy);
  });
  let dragged = false;
  const drop = () => {
    dragged = Boolean(drag && drag.moved);
    drag = null;
    stage.classList.remove("dragging");
  };
  window.addEventListener("pointerup", drop);
  window.addEventListener("pointercancel", drop);
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = stage.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
    else if (event.shiftKey && !event.deltaX) pan(event.deltaY, 0);
    else pan(event.deltaX, event.deltaY);
  }, { passive: false });
  window.addEventListener("resize", look);

  // ---- what is shown

  const found = (key) => svg().querySelector(`[data-key="${CSS.escape(key)}"]`);
  const groupOf = (name) => state.stored?.byName.get(name)?.group;

  function parse(text) {
    return document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
  }

  function show(name) {
    if (name === state.shown) return;
    const stored = state.stored;
    const picture = name === "main" ? first
      : name === "all" ? (stored.pictures.all ??= parse(stored.all))
      : name === "unfolded" ? (stored.pictures.unfolded ??= parse(stored.unfolded))
      : (stored.pictures[name] ??= parse(stored.groups[name]));
    holder.replaceChildren(picture);
    state.shown = name;
    adopt(picture);
    open();
    mark(by("search").value);
    by("back").hidden = name === "main" || name === "unfolded";
    by("unfold").setAttribute("aria-pressed", String(name === "unfolded"));
    by("ask").hidden = !document.body.hasAttribute("data-grouped") || name !== "main";
  }

  function showStep(name) {
    // A large net shows a group at a time.
    const group = groupOf(name);
    if (group && state.shown !== "all" && state.stored.groups && !found(name)) show(group);
  }

  // ---- choosing

  function release() {
    for (const element of document.querySelectorAll(".chosen, .near, .involved")) element.classList.remove("chosen", "near", "involved");
    svg().classList.remove("choosing");
    by("step").hidden = true;
    for (const line of document.querySelectorAll("#source .here")) line.classList.remove("here");
  }

  function choose(key, { focus = false, move = true } = {}) {
    release();
    const name = key.replace(/\/arc\.\d+$/, "");
    showStep(name);
    const element = found(key) || found(name);
    const step = state.stored?.byName.get(name);
    if (step) describe(step);
    if (!element) return;
    element.classList.add("chosen");
    if (element.classList.contains("box")) {
      svg().classList.add("choosing");
      const own = element.dataset.key;
      for (const line of svg().querySelectorAll(".line")) {
        if (line.dataset.from === own || line.dataset.to === own) line.classList.add("near");
      }
    }
    if (move) bring(element);
    if (focus) element.focus?.({ preventScroll: true });
  }

  function button(label, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    made.addEventListener("click", act);
    return made;
  }

  function add(parent, tag, content) {
    const made = document.createElement(tag);
    if (content !== undefined) made.textContent = content;
    parent.append(made);
    return made;
  }

  function describe(step) {
    const panel = by("step");
    panel.replaceChildren();
    panel.hidden = false;
    add(panel, "h2", step.name);
    add(panel, "p", `${step.kind}${step.line ? `, line ${step.line}` : ""}; tokens at once: ${step.tokens}`);
    const list = add(panel, "ul");
    step.arcs.forEach((arc, index) => {
      const item = add(list, "li");
      item.append(button(`→ ${arc.to}${arc.dead ? " (never)" : ""}`, () => { choose(arc.to); goTo(state.stored.byName.get(arc.to)); }));
      if (arc.when) item.append(Object.assign(document.createElement("code"), { textContent: `${index + 1}. ${arc.when}` }));
    });
    const inner = state.stored.inner?.[step.name];
    if (inner) {
      const details = add(panel, "details");
      add(details, "summary", "tasks inside");
      details.addEventListener("toggle", () => {
        if (details.open && !details.querySelector(".inside")) {
          const inside = add(details, "div");
          inside.className = "inside";
          const picture = parse(inner);
          for (const box of picture.querySelectorAll("[tabindex]")) box.removeAttribute("tabindex");
          inside.append(picture);
        }
      });
    }
    goTo(step);
  }

  stage.addEventListener("click", (event) => {
    if (dragged) return;
    const target = event.target.closest("[data-key]");
    if (target) pick(target);
    else if (!event.target.closest("#ask, #keys")) release();
  });

  function pick(target, move = false) {
    const key = target.dataset.key;
    if (key.startsWith("#") && state.stored?.groups?.[key]) return show(key);
    choose(target.closest(".inner") ? key.split("/")[0] : key, { move });
    if (target.classList.contains("line")) goTo({ file: null, line: Number(target.dataset.line) || null });
  }

  // ---- the source

  function goTo(place) {
    if (!place?.line) return;
    read(place.file ?? state.file);
    for (const line of document.querySelectorAll("#source .here")) line.classList.remove("here");
    const line = by("source").children[place.line - 1];
    if (!line) return;
    line.classList.add("here");
    line.scrollIntoView({ block: "center" });
  }

  function read(file) {
    if (file === state.file && by("source").childElementCount) return;
    const text = state.stored?.sources?.[file];
    const list = by("source");
    list.replaceChildren();
    by("file").textContent = file ?? "";
    state.file = file;
    if (text === undefined) {
      add(list, "li", "The source is not in this page.").className = "none";
      return;
    }
    const lines = document.createDocumentFragment();
    const all = text.replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n");
    for (const line of all) all.length > COLOURED_MAX ? add(lines, "li", line || " ") : colour(add(lines, "li"), line || " ");
    list.append(lines);
  }

  const COLOURED_MAX = 20000; // lines; each colour is an element
  const YAML = /(?<key>^\s*(?:- +)*(?:[\w./-]+|"[^"]*"|'[^']*')(?=\s*:(?:\s|$))|(?<=[{,]\s*)[\w.-]+(?=:\s))|(?<text>"(?:[^"\\]|\\.)*"|'[^']*')|(?<template>\{\{.*?\}\}|\{%.*?%\})|(?<comment>(?:^|\s)#.*$)|(?<value>(?<=(?::\s|[[,]|^\s*-)\s*)(?:true|false|null|-?\d+(?:\.\d+)?)(?=\s*(?:[,\]}]|\s#|$)))/g;

  function colour(item, line) {
    let end = 0;
    for (const found of line.matchAll(YAML)) {
      const kind = Object.keys(found.groups).find((name) => found.groups[name] !== undefined);
      item.append(line.slice(end, found.index));
      add(item, "span", found[0]).className = kind === "text" && /\{[{%]/.test(found[0]) ? "template" : kind;
      end = found.index + found[0].length;
    }
    item.append(line.slice(end));
  }

  // ---- findings

  const findings = [...document.querySelectorAll(".finding")];

  function showFinding(number) {
    if (!findings.length) return;
    state.picked = (number + findings.length) % findings.length;
    const one = findings[state.picked];
    choose(one.dataset.key);
    one.classList.add("chosen");
    one.scrollIntoView({ block: "nearest" });
    for (const step of JSON.parse(one.dataset.steps)) found(step)?.classList.add("involved");
    if (one.dataset.line) goTo({ file: one.dataset.file, line: Number(one.dataset.line) });
  }

  findings.forEach((one, number) => one.addEventListener("click", () => showFinding(number)));

  function tell(witness, one) {
    // How a finding comes about, move by move, once somebody asks.
    const details = document.createElement("details");
    add(details, "summary", "how it comes to that");
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("ol")) return;
      const list = add(details, "ol");
      for (const move of witness) {
        const item = add(list, "li");
        if (move.left_out) item.textContent = `… ${move.left_out} more …`;
        else item.append(told(move));
      }
    });
    one.after(details);
  }

  function told(move) {
    const made = button("", () => { choose(move.step); goTo(move); });
    made.className = "move";
    made.append(`${move.step} `, Object.assign(document.createElement("i"), { textContent: move.event }));
    made.append(` → ${move.to.join(", ") || "nothing fires"}`);
    if (move.line) made.append(Object.assign(document.createElement("small"), { textContent: `  line ${move.line}` }));
    return made;
  }

  // ---- search

  function mark(text) {
    const wanted = text.trim().toLowerCase();
    for (const box of svg().querySelectorAll(".box.match")) box.classList.remove("match");
    if (!wanted) return [];
    for (const box of svg().querySelectorAll(".box[data-key]")) {
      if (box.dataset.key.toLowerCase().includes(wanted)) box.classList.add("match");
    }
    return (state.stored?.steps ?? []).filter((step) => step.name.toLowerCase().includes(wanted));
  }

  function search() {
    const text = by("search").value;
    const hits = mark(text);
    by("matches").textContent = text.trim() ? (hits.length === 1 ? "1 step" : `${hits.length} steps`) : "";
    const list = by("results");
    list.replaceChildren();
    for (const step of hits.slice(0, 30)) {
      const item = document.createElement("li");
      item.append(button(step.name, () => { list.hidden = true; choose(step.name, { focus: true }); }));
      list.append(item);
    }
    list.hidden = !hits.length;
  }

  by("search").addEventListener("input", search);
  by("search").addEventListener("focus", search);
  by("search").addEventListener("keydown", (event) => {
    const items = by("results").querySelectorAll("button");
    if (event.key === "Enter") items[0]?.click();
    if (event.key === "ArrowDown") { event.preventDefault(); items[0]?.focus(); }
  });
  by("results").addEventListener("keydown", (event) => {
    const way = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (!way) return;
    event.preventDefault();
    (event.target.closest("li")[way]?.querySelector("button") ?? by("search")).focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".search")) by("results").hidden = true;
  });

  // ---- keys

  function neighbour(from, dx, dy) {
    // The nearest box that way; what a line joins to this one counts as nearer.
    const own = from.getBBox(), key = from.dataset.key;
    const cx = own.x + own.width / 2, cy = own.y + own.height / 2;
    const joined = new Set();
    for (const line of svg().querySelectorAll(".line")) {
      if (line.dataset.from === key) joined.add(line.dataset.to);
      if (line.dataset.to === key) joined.add(line.dataset.from);
    }
    let best = null, nearest = Infinity;
    for (const box of svg().querySelectorAll(".box[data-key][tabindex]")) {
      if (box === from || box.closest(".inner")) continue;
      const { x, y, width, height } = box.getBBox();
      const ax = x + width / 2 - cx, ay = y + height / 2 - cy;
      const ahead = ax * dx + ay * dy, aside = Math.abs(ax * dy) + Math.abs(ay * dx);
      if (ahead < 8) continue;
      const distance = (ahead + 2 * aside) * (joined.has(box.dataset.key) ? 0.2 : 1);
      if (distance < nearest) [best, nearest] = [box, distance];
    }
    return best;
  }

  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const acts = {
    "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), "0": fit,
    "n": () => showFinding(state.picked + 1), "p": () => showFinding(state.picked - 1),
    "/": () => { by("search").focus(); by("search").select(); },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      by("results").hidden = true;
      keys(false);
      release();
      if (document.activeElement === by("search")) stage.focus();
      return;
    }
    if (event.target.closest("input")) return;
    if (acts[event.key]) {
      event.preventDefault();
      acts[event.key]();
    } else if (event.target.closest("#stage")) onStage(event);
  });

  function onStage(event) {
    const box = event.target.closest(".box[data-key]");
    if (box && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      pick(box, true);
    }
    if (!ways[event.key]) return;
    event.preventDefault();
    const [dx, dy] = ways[event.key];
    if (!box) return pan(dx * 60, dy * 60);
    const next = neighbour(box, dx, dy);
    if (next) choose(next.dataset.key, { focus: true });
  }

  stage.addEventListener("focusin", (event) => {
    const box = event.target.closest(".box[data-key]");
    if (box && box.matches(":focus-visible")) bring(box);
    stage.scrollTo(0, 0); // the browser would move the page, we move the picture
  });

  // ---- buttons

  function keys(open) {
    by("keys").hidden = !open;
    by("help").setAttribute("aria-expanded", String(open));
  }

  by("larger").addEventListener("click", () => zoom(1.25));
  by("smaller").addEventListener("click", () => zoom(0.8));
  by("fit").addEventListener("click", fit);
  by("help").addEventListener("click", () => keys(by("keys").hidden));
  by("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  by("back").addEventListener("click", () => { release(); show("main"); });
  by("unfold").addEventListener("click", () => { release(); show(state.shown === "unfolded" ? "main" : "unfolded"); });
  const sure = (asking) => { by("sure").hidden = !asking; by("draw-all").hidden = asking; };
  by("draw-all").addEventListener("click", () => sure(true));
  by("no").addEventListener("click", () => sure(false));
  by("yes").addEventListener("click", () => { sure(false); show("all"); });

  // ---- what travels compressed

  async function unpack() {
    const packed = Uint8Array.from(atob(by("stored").textContent.trim()), (char) => char.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const stored = JSON.parse(await new Response(stream).text());
    stored.byName = new Map(stored.steps.map((step) => [step.name, step]));
    stored.pictures = {};
    return stored;
  }

  adopt(first);
  open();
  unpack().then((stored) => {
    state.stored = stored;
    const files = Object.keys(stored.sources ?? {});
    read(stored.steps.find((step) => step.file)?.file ?? files[0]);
    findings.forEach((one, number) => stored.witnesses?.[number]?.length && tell(stored.witnesses[number], one));
    by("unfold").hidden = !stored.unfolded;
    by("draw-all").hidden = !stored.all;
    by("ask").hidden = !document.body.hasAttribute("data-grouped");
    if (stored.unfolded && document.body.hasAttribute("data-unfolded")) show("unfolded");
    root.dataset.ready = "yes";
  }, (problem) => {
    by("source").textContent = "This browser is too old to unpack the source and the pictures that are not shown yet.";
    root.dataset.ready = String(problem);
  });
})();
