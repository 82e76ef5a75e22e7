// The source: what each line cost, and step by step what a block assigns and touches.

const rowsOfPlaces = new Map(); // place → row of the table
const costs = new Map(data.lines.map((line) => [line.at, line]));

// The steps of a block as statements: what one run of a line does.
function statements(block) {
  const out = [];
  for (const item of block ? block.steps : []) {
    const last = out[out.length - 1];
    if (last && last.at === item.at) last.items.push(item);
    else out.push({at: item.at, items: [item]});
  }
  return out;
}

function makeSource() {
  const table = element("table"),
    wrong = new Set(data.findings.map((f) => f.at));
  const head = element("tr");
  for (const [text, name] of [
    ["line", ""],
    ["runs", ""],
    ["bytes", ""],
    ["ops", ""],
    ["code, and what this block assigns", "code"],
  ]) {
    head.append(element("th", {textContent: text, className: name}));
  }
  table.append(head);
  data.sources.forEach((source, number) => {
    const title = element("td", {
      colSpan: 5,
      textContent: `${source.function}, ${fileName(source)}`,
      title: source.file,
    });
    table.append(element("tr", {className: "file"}, title));
    source.lines.forEach((text, i) => table.append(sourceRow(number, source.first + i, text, wrong)));
  });
  $("source").replaceChildren(table);
}

function sourceRow(source, line, text, wrong) {
  const at = data.places.flatMap((p, i) => (p.source === source && p.line === line ? [i] : []));
  const found = at.map((place) => costs.get(place)).filter(Boolean);
  const total = (what) => sum(found.map(what));
  const runs = total((c) => c.runs),
    moved = total((c) => c["bytes read"] + c["bytes written"]);
  const done = total((c) => sum(Object.values(c.operations)));
  const row = element("tr");
  for (const shown of [
    line,
    runs ? runs.toLocaleString("en") : "",
    moved ? bytes(moved) : "",
    done ? amount(done) : "",
  ]) {
    row.append(element("td", {className: "number", textContent: shown}));
  }
  row.append(element("td", {className: "code"}, text, element("span", {className: "value"})));
  row.classList.toggle(
    "wrong",
    at.some((place) => wrong.has(place)),
  );
  at.forEach((place) => rowsOfPlaces.set(place, row));
  return row;
}

const typeOf = (item) => `${item.dtype}${item.shape.length ? `[${item.shape.join(",")}]` : ""}`;

function showStep() {
  const {steps, step} = state,
    now = steps[step];
  for (const row of rowsOfPlaces.values()) {
    row.classList.remove("now");
    row.querySelector(".value").textContent = "";
  }
  for (const statement of steps.slice(0, step + 1)) {
    const assigned = statement.items.filter((item) => item.name !== undefined);
    const row = rowsOfPlaces.get(statement.at);
    if (!assigned.length || !row) continue;
    row.querySelector(".value").textContent = assigned
      .map((item) => `${item.name} ${typeOf(item)} ${item.value}`)
      .join("; ");
  }
  const row = now && rowsOfPlaces.get(now.at);
  if (row) row.classList.add("now");
  if (row && state.scroll) row.scrollIntoView({block: "nearest"});
  $("slider").max = Math.max(steps.length - 1, 0);
  $("slider").value = step;
  $("step-note").textContent = steps.length
    ? `step ${step + 1} of ${steps.length}${state.block.complete ? "" : "+"}`
    : "";
  $("now").replaceChildren(
    ...(now ? now.items.map(described) : [element("div", {className: "muted", textContent: noSteps()})]),
  );
}

const noSteps = () =>
  state.block
    ? "This block ran no line."
    : "The steps of this block were not recorded: --block, or blocks= of ct.view, records it. " +
      "The pictures show the smallest boxes around what it reads and writes.";

function described(item) {
  if (item.name !== undefined) {
    return element("div", {}, element("b", {textContent: item.name}), ` ${typeOf(item)} ${item.value}`);
  }
  if (item.access === undefined) return element("div", {className: "muted", textContent: "runs"});
  const access = data.accesses[item.access];
  const line = element("div", {}, element("b", {textContent: access.call, className: access.effect}), " ");
  line.append(item.regions.map((region) => regionText(region)).join("; ") || "touches no element");
  return line;
}

const spans = (box) => box.map(([b, n]) => (n === 1 ? `${b}` : `${b}:${b + n}`)).join(", ");

function regionText(region) {
  const array = data.arrays[region.array];
  if (region.outside) return `elements outside ${array.name} in [${spans(region.outside)}]`;
  if (!region.box) {
    const count = sum(region.runs.filter((_, i) => i % 2));
    const first = tuple(unravel(region.runs[0], array.shape));
    return `${array.name}: ${region.exact === false ? "within " : ""}${plural(count, "element")}, from ${first}`;
  }
  const inside = product(
    region.box.map(([b, n], k) => Math.max(0, Math.min(b + n, array.shape[k]) - Math.max(b, 0))),
  );
  const outside = product(region.box.map(([, n]) => n)) - inside;
  const beyond = outside ? `, ${outside.toLocaleString("en")} of them outside the array` : "";
  return `${array.name}[${spans(region.box)}]${beyond}`;
}
