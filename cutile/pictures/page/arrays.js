// The arrays: what the chosen block touches, or how often all blocks read or write each element.

const MOST_PANELS = 12,
  MOST_ARRAYS = 24;

// The axes of an array as pictures have them: a short last axis of three, such as colours, goes to the front.
const turned = (array) => array.shape.length === 3 && array.shape[2] <= 4 && array.shape[0] > 4;
const seen = (array, x) => (turned(array) ? [x[2], x[0], x[1]] : x);

// An array as panels of rows and columns: the leading axes of more than two are one axis, of which a panel shows a
// part.
function planes(array) {
  const shape = seen(array, array.shape),
    rank = shape.length;
  const rows = rank > 1 ? shape[rank - 2] : 1,
    columns = rank ? shape[rank - 1] : 1,
    leading = shape.slice(0, -2);
  const lead = product(leading),
    panels = Math.max(1, Math.min(lead, MOST_PANELS));
  return {rows, columns, leading, lead, panels, each: Math.max(1, Math.ceil(lead / panels))};
}

// The place {lead, row, column} of an element.
function placeOf(array, index) {
  const at = seen(array, index),
    rank = at.length;
  return {
    lead: ravel(at.slice(0, -2), planes(array).leading),
    row: rank > 1 ? at[rank - 2] : 0,
    column: rank ? at[rank - 1] : 0,
  };
}

// Rectangles {lead, row, rows, column, columns} of a region. Those of a box may reach beyond the array.
function rectangles(region) {
  const array = data.arrays[region.array],
    {rows, columns, leading} = planes(array);
  if (region.box || region.outside) {
    const box = seen(array, region.box || region.outside),
      last = box[box.length - 1] || [0, 1],
      other = box.length > 1 ? box[box.length - 2] : [0, 1];
    let leads = [0];
    box.slice(0, -2).forEach(([begin, n], k) => {
      const from = Math.max(begin, 0),
        to = Math.min(begin + n, leading[k]);
      leads = leads.flatMap((at) =>
        Array.from({length: Math.max(to - from, 0)}, (_, i) => at * leading[k] + from + i),
      );
    });
    return leads.map((lead) => ({lead, row: other[0], rows: other[1], column: last[0], columns: last[1]}));
  }
  const out = [];
  for (let i = 0; i < region.runs.length; i += 2) {
    let [at, left] = region.runs.slice(i, i + 2);
    for (; turned(array) && left > 0; at += 1, left -= 1) {
      out.push({...placeOf(array, unravel(at, array.shape)), rows: 1, columns: 1});
    }
    while (left > 0) {
      const lead = Math.floor(at / (rows * columns)),
        row = Math.floor(at / columns) % rows,
        column = at % columns;
      const whole = column === 0 && left >= columns;
      const r = whole ? Math.min(Math.floor(left / columns), rows - row) : 1;
      const c = whole ? columns : Math.min(left, columns - column);
      out.push({lead, row, rows: r, column, columns: c});
      at += r * c;
      left -= r * c;
    }
  }
  return out;
}

// The rows and columns that pictures of an array show: all of the array, and what tiles cover around it.
function extents(number) {
  const {rows, columns} = planes(data.arrays[number]);
  const out = {top: 0, bottom: rows, left: 0, right: columns};
  for (const block of data.blocks)
    for (const step of block.steps)
      for (const region of step.regions || []) {
        if (region.array !== number || region.runs) continue;
        for (const r of rectangles(region).slice(0, 1)) {
          out.top = Math.max(Math.min(out.top, r.row), -rows);
          out.left = Math.max(Math.min(out.left, r.column), -columns);
          out.bottom = Math.min(Math.max(out.bottom, r.row + r.rows), 2 * rows + 8);
          out.right = Math.min(Math.max(out.right, r.column + r.columns), 2 * columns + 8);
        }
      }
  return out;
}

// Arrays of one shape show the same rows and columns, so that they have one scale.
function sharedExtents() {
  const found = data.arrays.map((_, i) => extents(i));
  return data.arrays.map((a) => {
    const alike = found.filter((_, i) => same(data.arrays[i].shape, a.shape));
    const least = (side) => Math.min(...alike.map((e) => e[side])),
      most = (side) => Math.max(...alike.map((e) => e[side]));
    return {top: least("top"), bottom: most("bottom"), left: least("left"), right: most("right")};
  });
}
const shownExtents = sharedExtents();

// Where panels and elements are in a picture of this width.
function arrayLayout(number, width) {
  const {panels, lead} = planes(data.arrays[number]),
    e = shownExtents[number];
  const flat = data.arrays[number].shape.length < 2;
  const across = Math.min(panels, 4),
    panelWidth = (width - GAP * (across - 1)) / across;
  const ratio = (e.bottom - e.top) / Math.max(e.right - e.left, 1);
  const panelHeight = flat
    ? 34
    : Math.max(Math.min(panelWidth * ratio, panels > 1 ? 110 : 260), Math.min(40, panelWidth));
  const label = lead > 1 ? 12 : 0,
    line = panelHeight + label + (panels > 1 ? 6 : 0);
  const x = panelWidth / Math.max(e.right - e.left, 1),
    y = panelHeight / Math.max(e.bottom - e.top, 1);
  const origin = (panel) => [(panel % across) * (panelWidth + GAP), Math.floor(panel / across) * line + label];
  const place = (panel, r) => {
    const [left, top] = origin(panel);
    return [left + (r.column - e.left) * x, top + (r.row - e.top) * y, r.columns * x, r.rows * y];
  };
  return {place, origin, panelWidth, panelHeight, label, height: Math.ceil(panels / across) * line + 2};
}

function drawArrays() {
  const parent = $("arrays");
  parent.replaceChildren();
  const all = [...data.arrays.keys()],
    touching = all.filter((i) => state.mode !== "block" || touched(i).length);
  const shown = all.length > MOST_ARRAYS ? touching.slice(0, MOST_ARRAYS) : all;
  for (const number of shown) {
    const array = data.arrays[number],
      counted = array[state.mode];
    const note = counted
      ? `each element ${state.mode === "reads" ? "read" : "written"} ${
          counted.least === counted.most
            ? plural(counted.most, "time")
            : `${counted.least} to ${plural(counted.most, "time")}`
        }`
      : "";
    const box = element(
      "div",
      {className: "array"},
      element(
        "div",
        {className: "title"},
        element("b", {textContent: array.name}),
        `${array.dtype}[${array.shape.join(",")}]`,
        element("span", {className: "muted", textContent: note || bytes(array.bytes)}),
      ),
    );
    if (state.mode === "block")
      box.append(element("div", {className: "range muted", textContent: touchedText(number)}));
    parent.append(box);
    if (product(array.shape)) drawArray(box, array, number, note);
  }
  if (shown.length < all.length) parent.append(`${plural(all.length - shown.length, "array")} more`);
  $("legend").replaceChildren(...legend());
}

function drawArray(parent, array, number, note) {
  const layout = arrayLayout(number, parent.clientWidth),
    {panels, lead, leading, each, rows, columns} = planes(array);
  const {context} = canvas(parent, layout.height, `${array.name}: ${note || "what the block touches"}`);
  const whole = {row: 0, rows, column: 0, columns};
  for (let p = 0; p < panels; p += 1) {
    const [left, top] = layout.origin(p);
    context.fillStyle = hatch(context, colour("pad"));
    context.fillRect(left, top, layout.panelWidth, layout.panelHeight);
    context.fillStyle = colour("cell");
    context.fillRect(...layout.place(p, whole));
    if (layout.label) {
      context.fillStyle = colour("muted");
      context.font = "10px system-ui, sans-serif";
      const first = p * each,
        last = Math.min(first + each, lead) - 1;
      context.fillText(first === last ? tuple(unravel(first, leading)) : `${first} … ${last}`, left, top - 3);
    }
  }
  const inPanels = (paint) => {
    for (let p = 0; p < panels; p += 1) clipped(context, layout, p, () => paint(p));
  };
  if (state.mode === "block") {
    for (const [region, effect, strength] of touched(number)) {
      const all = rectangles(region);
      inPanels((p) =>
        all
          .filter((r) => Math.floor(r.lead / each) === p)
          .forEach((r) => paintRegion(context, layout, p, r, whole, colour(effect), strength, region.outside)),
      );
    }
  } else inPanels((p) => paintCounts(context, layout, p, array, array[state.mode], each));
  inPanels((p) => {
    context.strokeStyle = colour("muted");
    context.lineWidth = 1;
    context.strokeRect(...layout.place(p, whole));
    paintFindings(context, layout, p, array, number, each);
  });
}

function clipped(context, layout, panel, paint) {
  const [left, top] = layout.origin(panel);
  context.save();
  context.beginPath();
  context.rect(left, top, layout.panelWidth, layout.panelHeight);
  context.clip();
  paint();
  context.restore();
}

// The smallest boxes around what the block, or the blocks of the cell, read and write of an array: [box, effect].
function hulls(number) {
  const atomics = data.accesses.filter((a) => a.arrays.includes(number)).every((a) => a.effect === "atomic");
  return ["read", "write"].flatMap((effect) => {
    const what = effect === "read" ? "reads" : "writes",
      cells = data.cells && data.cells[effect === "read" ? "boxes read" : "boxes written"];
    const found = state.block ? state.block[what].find((t) => t.array === number) : null,
      box = state.block ? found && found.box : cells && cells[number][state.cell];
    return box ? [[box, atomics ? "atomic" : effect]] : [];
  });
}

function touchedText(number) {
  const several = !state.block && data.cells && product(data.cells.cell) > 1,
    found = hulls(number);
  const atomic = found.some(([, effect]) => effect === "atomic");
  const words = (atomic ? found.slice(0, 1) : found).map(
    ([box, effect]) =>
      `${{read: "read", write: "write", atomic: "update"}[effect]}${several ? "" : "s"} ` +
      (box.length ? `[${spans(box)}]` : "it"),
  );
  return words.length ? `${several ? "these blocks" : "this block"} ${words.join(", ")}` : "";
}

// What the block touches in an array: [region, effect, strength], the regions of the current step last.
function touched(number) {
  if (!state.block) return hulls(number).map(([box, effect]) => [{array: number, box}, effect, 1]);
  const out = [];
  state.steps.forEach((statement, i) => {
    const strength = i === state.step ? 1 : i < state.step ? 0.3 : 0.1;
    for (const item of statement.items)
      for (const region of item.regions || []) {
        if (region.array === number) out.push([region, data.accesses[item.access].effect, strength]);
      }
  });
  return out.sort((a, b) => a[2] - b[2]);
}

function paintRegion(context, layout, panel, r, whole, style, strength, hatched) {
  const [x, y, w, h] = layout.place(panel, r);
  const width = Math.max(w, 1.5),
    height = Math.max(h, 1.5);
  context.globalAlpha = 0.15 + 0.45 * strength;
  if (hatched) {
    context.fillStyle = hatch(context, style);
    context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
    return;
  }
  const outside = r.row < 0 || r.column < 0 || r.row + r.rows > whole.rows || r.column + r.columns > whole.columns;
  if (outside) {
    context.fillStyle = hatch(context, style);
    context.fillRect(x, y, width, height);
    const row = Math.max(r.row, 0),
      column = Math.max(r.column, 0);
    const inner = {
      row,
      column,
      rows: Math.min(r.row + r.rows, whole.rows) - row,
      columns: Math.min(r.column + r.columns, whole.columns) - column,
    };
    context.fillStyle = style;
    if (inner.rows > 0 && inner.columns > 0) context.fillRect(...layout.place(panel, inner));
  } else {
    context.fillStyle = style;
    context.fillRect(x, y, width, height);
  }
  context.globalAlpha = strength === 1 ? 1 : 0.35;
  context.strokeStyle = style;
  context.lineWidth = strength === 1 ? 2 : 1;
  if ((w > 3 && h > 3) || strength === 1) context.strokeRect(x, y, width, height);
  context.globalAlpha = 1;
}

function paintCounts(context, layout, panel, array, counted, each) {
  const low = colour("low"),
    high = colour("high"),
    {rows, columns} = planes(array);
  const [wide, tall] = [...[...seen(array, counted.cell)].reverse(), 1, 1]; // a cell along columns and rows
  const found = new Map(); // several leading cells may share a panel: the largest mean shows
  counted.mean.forEach((mean, i) => {
    const {lead, row, column} = placeOf(
      array,
      unravel(i, counted.counts).map((j, k) => j * counted.cell[k]),
    );
    if (Math.floor(lead / each) === panel)
      found.set(`${row},${column}`, Math.max(mean, found.get(`${row},${column}`) || 0));
  });
  for (const [key, mean] of found) {
    const [row, column] = key.split(",").map(Number);
    const [x, y, w, h] = layout.place(panel, {
      row,
      column,
      rows: Math.min(tall, rows - row),
      columns: Math.min(wide, columns - column),
    });
    context.fillStyle = mean ? mixed(low, high, 0.15 + (0.85 * mean) / counted.most) : colour("cell");
    context.fillRect(x, y, w + 0.5, h + 0.5);
  }
}

function paintFindings(context, layout, panel, array, number, each) {
  for (const f of data.findings) {
    if (f.array !== number || !f.element || f.element.length !== array.shape.length) continue;
    const {lead, row, column} = placeOf(array, f.element);
    if (Math.floor(lead / each) !== panel) continue;
    const [x, y, w, h] = layout.place(panel, {row, rows: 1, column, columns: 1});
    context.strokeStyle = context.fillStyle = colour("bad");
    context.lineWidth = 2;
    context.fillRect(x, y, Math.max(w, 2), Math.max(h, 2));
    context.beginPath();
    context.arc(x + w / 2, y + h / 2, 7, 0, 2 * Math.PI);
    context.stroke();
  }
}

function hatch(context, style) {
  const tile = element("canvas", {width: 6, height: 6}),
    c = tile.getContext("2d");
  c.strokeStyle = style;
  c.lineWidth = 1.2;
  c.beginPath();
  for (const shift of [-6, 0, 6]) {
    c.moveTo(shift, 6);
    c.lineTo(shift + 6, 0);
  }
  c.stroke();
  return context.createPattern(tile, "repeat");
}

function legend() {
  const key = (style, text) => {
    const box = element("i");
    box.style.background = style;
    return [element("span", {}, box, text), " "];
  };
  const outside = `repeating-linear-gradient(135deg, ${colour("pad")} 0 1px, transparent 1px 4px)`;
  if (state.mode !== "block")
    return [
      ...key(colour("cell"), "never"),
      ...key(colour("high"), "most often"),
      ...key(outside, "outside the array"),
    ];
  const effects = [...new Set(data.accesses.map((a) => a.effect))];
  const words = {read: "reads", write: "writes", atomic: "atomics"};
  return [
    ...effects.flatMap((e) => key(colour(e), words[e])),
    ...key(outside, "outside the array"),
    ...(data.findings.some((f) => f.element) ? key(colour("bad"), "finding") : []),
  ];
}
