// Puts the page together: what is chosen, keys, the tables.

function chooseBlock(block) {
  state.block = block;
  state.cell = cellOf(block.block);
  state.steps = statements(block);
  state.step = Math.min(state.step, Math.max(state.steps.length - 1, 0));
  show();
}

function chooseCell(cell) {
  const recorded = recordedCells.get(cell);
  if (recorded) {
    chooseBlock(recorded);
    return;
  }
  Object.assign(state, {cell, block: null, steps: [], step: 0});
  show();
}

function chooseNamed(text) {
  const given = text
      .split(/[ ,()]+/)
      .filter(Boolean)
      .map(Number),
    block = [0, 1, 2].map((k) => given[k] || 0);
  const recorded = data.blocks.find((b) => same(b.block, block));
  if (recorded) chooseBlock(recorded);
  else if (block.every((i, k) => Number.isInteger(i) && i >= 0 && i < data.grid[k])) chooseCell(cellOf(block));
  show();
}

function moveBlock(by) {
  if (!data.blocks.length) return;
  const at = data.blocks.indexOf(state.block);
  chooseBlock(data.blocks[(at + by + data.blocks.length) % data.blocks.length]);
}

function moveStep(to) {
  state.step = Math.max(0, Math.min(to, state.steps.length - 1));
  state.scroll = true;
  showStep();
  if (state.mode === "block") drawArrays();
}

function chooseMode(mode) {
  state.mode = mode;
  for (const b of document.querySelectorAll("[data-mode]")) b.setAttribute("aria-pressed", b.dataset.mode === mode);
  drawArrays();
}

function chooseTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  drawAll();
}

function show() {
  const cell = data.cells && data.cells.cell,
    block = state.block
      ? state.block.block
      : data.cells && unravel(state.cell, data.cells.counts).map((i, k) => i * cell[k]);
  $("block").value = block ? block.join(",") : "";
  const moved = data.cells
    ? `reads ${bytes(data.cells["bytes read"][state.cell])}, writes ${bytes(data.cells["bytes written"][state.cell])}`
    : "";
  $("block-note").textContent =
    cell && product(cell) > 1 ? `one of ${product(cell)} in its cell, which ${moved}` : moved;
  drawAll();
}

function drawAll() {
  drawGrid();
  showStep();
  drawArrays();
  drawRoofline();
}

function makeHeader() {
  const source = data.sources[0];
  $("kernel").textContent = data.kernel;
  $("summary").title = source.file;
  $("summary").textContent =
    `${fileName(source)}, line ${source.first} · ` +
    `grid ${data.grid.join(" × ")}: ${plural(product(data.grid), "block")}`;
  if (data.error) Object.assign($("error"), {textContent: `The launch failed: ${data.error}`, hidden: false});
  if (!data.findings.length) return;
  Object.assign($("to-findings"), {textContent: plural(data.findings.length, "finding"), hidden: false});
  $("findings").hidden = false;
  for (const f of data.findings) {
    const place = f.at === undefined || f.at === null ? null : data.places[f.at];
    const item = element("li", {}, element("span", {className: "bad", textContent: f.message}));
    if (place) item.append(element("br"), element("code", {textContent: `line ${place.line}: ${lineText(place)}`}));
    if (f.help) item.append(element("br"), element("span", {className: "muted", textContent: f.help}));
    const recorded = f.block && data.blocks.find((b) => same(b.block, f.block));
    if (recorded)
      item.append(
        element("button", {textContent: `show block ${tuple(f.block)}`, onclick: () => showFinding(f, recorded)}),
      );
    $("finding-list").append(item);
  }
}

const lineText = (place) =>
  (data.sources[place.source].lines[place.line - data.sources[place.source].first] || "").trim();

function showFinding(finding, block) {
  chooseBlock(block);
  const at = state.steps.findIndex((statement) => statement.at === finding.at);
  chooseMode("block");
  if (at >= 0) moveStep(at);
  scrollTo(0, 0);
}

function makeAccesses() {
  const columns = [
    "line",
    "access",
    "array",
    "tile",
    "padding",
    "runs",
    "elements",
    "masked out",
    "outside",
    "bytes",
  ];
  const text = new Set(["access", "array", "tile", "padding"]);
  const head = element(
    "tr",
    {},
    ...columns.map((c) => element("th", {textContent: c, className: text.has(c) ? "text" : ""})),
  );
  const rows = data.accesses.map((a) => {
    const order = a.memory_order === "WEAK" ? "" : ` ${a.memory_order} ${a.memory_scope}`;
    const values = [
      data.places[a.at].line,
      a.call + order + (a.calls.length ? ` in ${a.calls.map((c) => `line ${c}`).join(" → ")}` : ""),
      a.arrays.map((i) => data.arrays[i].name).join(", "),
      `[${a.shape.join(",")}]${a.check_bounds ? "" : " unchecked"}`,
      a.padding || "",
      a.runs.toLocaleString("en"),
      a.elements.toLocaleString("en"),
      a.masked ? a["masked out"].toLocaleString("en") : "",
      a.outside ? a.outside.toLocaleString("en") : "",
      bytes(a.bytes),
    ];
    return element(
      "tr",
      {},
      ...values.map((v, i) =>
        element("td", {
          textContent: v,
          className: `${text.has(columns[i]) ? "text" : ""} ${columns[i] === "access" ? a.effect : ""}`,
        }),
      ),
    );
  });
  $("accesses").replaceChildren(head, ...rows);
}

const KEYS = {
  ArrowLeft: () => moveStep(state.step - 1),
  ArrowRight: () => moveStep(state.step + 1),
  ArrowUp: () => moveBlock(-1),
  ArrowDown: () => moveBlock(1),
  Home: () => moveStep(0),
  End: () => moveStep(Infinity),
  b: () => chooseMode("block"),
  r: () => chooseMode("reads"),
  w: () => chooseMode("writes"),
  t: () => chooseTheme(!document.documentElement.classList.contains("dark")),
  "?": () => $("help").showModal(),
};

function start() {
  document.documentElement.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
  makeHeader();
  makeSource();
  makeAccesses();
  data.gpus.forEach((gpu, i) => $("gpu").append(element("option", {value: i, textContent: gpu.name})));
  $("gpu").onchange = () => {
    state.gpu = Number($("gpu").value);
    drawRoofline();
  };
  $("slider").oninput = () => moveStep(Number($("slider").value));
  $("block").onchange = () => chooseNamed($("block").value);
  $("theme").onclick = KEYS.t;
  $("help-button").onclick = KEYS["?"];
  for (const b of document.querySelectorAll("[data-mode]")) b.onclick = () => chooseMode(b.dataset.mode);
  const moves = {first: KEYS.Home, back: KEYS.ArrowLeft, on: KEYS.ArrowRight, last: KEYS.End};
  for (const b of document.querySelectorAll("[data-step]")) b.onclick = moves[b.dataset.step];
  document.addEventListener("keydown", (event) => {
    if (
      event.target.tagName === "SELECT" ||
      event.target.id === "block" ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      $("help").open
    )
      return;
    const act = KEYS[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });
  window.addEventListener("resize", drawAll);
  if (data.blocks.length) chooseBlock(data.blocks[0]);
  else show();
  chooseMode("block");
}

start();
