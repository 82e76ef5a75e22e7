// The grid: its cells by the bytes that their blocks move. A click chooses a block.

const GAP = 10;

// Where each cell stands: axes of length 1 do not count, one axis is wrapped into lines, the last of three gives
// panels.
function gridLayout(width) {
  const counts = data.cells.counts,
    axes = [0, 1, 2].filter((k) => counts[k] > 1);
  const total = product(counts);
  let place,
    rows,
    columns,
    panels = 1;
  if (axes.length <= 1) {
    columns = Math.min(total, Math.max(16, Math.ceil(Math.sqrt(2 * total))));
    rows = Math.ceil(total / columns);
    place = (cell) => [0, Math.floor(cell / columns), cell % columns];
  } else {
    const [a, b] = axes;
    rows = counts[a];
    columns = counts[b];
    panels = axes.length === 3 ? counts[2] : 1;
    place = (cell) => {
      const at = unravel(cell, counts);
      return [axes.length === 3 ? at[2] : 0, at[a], at[b]];
    };
  }
  const across = Math.ceil(Math.sqrt(panels)),
    panelWidth = (width - GAP * (across - 1)) / across;
  const size = Math.max(1.5, Math.min(22, panelWidth / columns, 260 / rows));
  const high = Math.ceil(panels / across);
  const corner = (cell) => {
    const [p, r, c] = place(cell);
    return [
      (p % across) * (columns * size + GAP) + c * size,
      Math.floor(p / across) * (rows * size + GAP) + r * size,
    ];
  };
  return {size, corner, height: high * (rows * size + GAP)};
}

const cellOf = (block) =>
  ravel(
    block.map((i, k) => Math.floor(i / data.cells.cell[k])),
    data.cells.counts,
  );
const wrongCells = new Set(data.cells ? data.findings.filter((f) => f.block).map((f) => cellOf(f.block)) : []);
const recordedCells = new Map(data.blocks.map((b) => [cellOf(b.block), b]).reverse());

function drawGrid() {
  const parent = $("grid");
  parent.replaceChildren();
  if (!data.cells) {
    parent.append("no block ran");
    return;
  }
  const layout = gridLayout(parent.clientWidth),
    moved = data.cells["bytes read"].map((n, i) => n + data.cells["bytes written"][i]);
  const {made, context} = canvas(parent, layout.height, `grid of ${data.grid.join(" × ")} blocks`);
  const most = Math.max(...moved, 1),
    low = colour("low"),
    high = colour("high"),
    gap = layout.size > 5 ? 1 : 0;
  moved.forEach((n, cell) => {
    const [x, y] = layout.corner(cell),
      inner = layout.size - gap;
    context.fillStyle = mixed(low, high, n / most);
    context.fillRect(x, y, inner, inner);
    if (recordedCells.has(cell) && layout.size > 8) {
      context.fillStyle = n / most > 0.55 ? colour("back") : colour("text");
      context.fillRect(x + inner / 2 - 1, y + inner / 2 - 1, 2, 2);
    }
    if (wrongCells.has(cell)) outline(context, x, y, inner, colour("bad"), 2);
  });
  const [x, y] = layout.corner(state.cell);
  outline(context, x, y, layout.size - gap, colour("write"), 2.5);
  made.onclick = (event) => {
    const at = moved.findIndex((_, cell) => {
      const [left, top] = layout.corner(cell);
      return (
        event.offsetX >= left &&
        event.offsetX < left + layout.size &&
        event.offsetY >= top &&
        event.offsetY < top + layout.size
      );
    });
    if (at >= 0) chooseCell(at);
  };
}

function outline(context, x, y, size, style, width) {
  context.strokeStyle = style;
  context.lineWidth = width;
  context.strokeRect(
    x + width / 2 - 1,
    y + width / 2 - 1,
    Math.max(size - width + 2, 1),
    Math.max(size - width + 2, 1),
  );
}
