// Bytes, operations, and where their ratio stands under the roofline of a GPU.

const W = 300,
  H = 190,
  LEFT = 44,
  BOTTOM = 26,
  TOP = 8;

function drawRoofline() {
  const gpu = data.gpus[state.gpu],
    totals = data.totals,
    count = sum(Object.values(totals.operations));
  const seconds = sum(Object.entries(totals.operations).map(([what, n]) => n / (gpu.peaks[what] || gpu.other)));
  const peak = count ? count / seconds : gpu.other; // of this mix of operations
  const points = [
    ["every access", totals.intensity, "write"],
    ["each element once", totals["intensity of touched bytes"], "read"],
  ].filter(([, x]) => x);
  const ridge = peak / gpu.bandwidth;
  const xs = [ridge, ...points.map(([, x]) => x)];
  const x0 = Math.log10(Math.min(...xs)) - 1,
    x1 = Math.log10(Math.max(...xs)) + 1;
  const y1 = Math.log10(peak) + 0.4,
    y0 = Math.log10(gpu.bandwidth) + x0;
  const X = (v) => LEFT + ((Math.log10(v) - x0) / (x1 - x0)) * (W - LEFT - 6);
  const Y = (v) => TOP + ((y1 - Math.log10(v)) / (y1 - y0)) * (H - TOP - BOTTOM);
  const svg = svgElement("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "roofline"});
  for (let k = Math.ceil(x0); k <= x1; k += 1) {
    svg.append(
      svgElement("line", {x1: X(10 ** k), x2: X(10 ** k), y1: TOP, y2: H - BOTTOM, stroke: colour("rule")}),
      svgElement(
        "text",
        {x: X(10 ** k), y: H - BOTTOM + 12, "text-anchor": "middle", fill: colour("muted")},
        k >= 0 ? String(10 ** k) : `1/${10 ** -k}`,
      ),
    );
  }
  for (let k = Math.ceil(y0); k <= y1; k += 1) {
    svg.append(
      svgElement("line", {x1: LEFT, x2: W - 6, y1: Y(10 ** k), y2: Y(10 ** k), stroke: colour("rule")}),
      svgElement(
        "text",
        {x: LEFT - 4, y: Y(10 ** k) + 3, "text-anchor": "end", fill: colour("muted")},
        amount(10 ** k),
      ),
    );
  }
  svg.append(
    svgElement(
      "text",
      {x: (W + LEFT) / 2, y: H - 2, "text-anchor": "middle", fill: colour("muted")},
      "operations per byte; operations per second",
    ),
    svgElement("polyline", {
      points: `${X(10 ** x0)},${Y(gpu.bandwidth * 10 ** x0)} ${X(ridge)},${Y(peak)} ${X(10 ** x1)},${Y(peak)}`,
      fill: "none",
      stroke: colour("text"),
      "stroke-width": 1.6,
    }),
  );
  const rows = [
    ["read", bytes(totals["bytes read"])],
    ["written", bytes(totals["bytes written"])],
    ["touched elements", bytes(totals["touched bytes"])],
    ...Object.entries(totals.operations).map(([what, n]) => [what.replace("other ", ""), `${amount(n)} operations`]),
  ];
  for (const [name, x, style] of points) {
    const reached = Math.min(peak, gpu.bandwidth * x);
    svg.append(
      svgElement("line", {
        x1: X(x),
        x2: X(x),
        y1: Y(reached),
        y2: H - BOTTOM,
        stroke: colour(style),
        "stroke-dasharray": "3 3",
      }),
      svgElement("circle", {cx: X(x), cy: Y(reached), r: 4.5, fill: colour(style), "data-point": name}),
    );
    const bound = x < ridge ? "memory" : "compute";
    rows.push(
      [element("span", {className: style, textContent: `● ${name}`}), `${Number(x.toPrecision(3))} per byte`],
      [`at most ${amount(reached)}/s, ${Math.round((100 * reached) / peak)} % of the peak: ${bound}-bound`],
    );
  }
  $("roofline").replaceChildren(
    ...(points.length
      ? [svg]
      : [element("p", {className: "muted", textContent: "no arithmetic, or no access to memory"})]),
  );
  $("costs").replaceChildren(
    element(
      "table",
      {},
      ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {colSpan: 3 - row.length}, cell)))),
    ),
  );
}

function svgElement(tag, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}
