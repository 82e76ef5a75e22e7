// The data, small helpers, and what is chosen.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const state = {cell: 0, block: null, steps: [], step: 0, mode: "block", gpu: 0};

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function amount(n, base = 1000, unit = "") {
  const prefixes = ["", "K", "M", "G", "T", "P"];
  let k = 0;
  while (n >= base && k < prefixes.length - 1) {
    n /= base;
    k += 1;
  }
  const digits = n >= 100 ? Math.round(n) : Number(n.toPrecision(3));
  return `${digits} ${prefixes[k]}${k && base === 1024 ? "i" : ""}${unit}`.trim();
}

const bytes = (n) => amount(n, 1024, "B");
const product = (numbers) => numbers.reduce((a, b) => a * b, 1);
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const plural = (n, one) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
const tuple = (numbers) => `(${numbers.join(", ")}${numbers.length === 1 ? "," : ""})`;
const fileName = (source) => source.file.split(/[\\/]/).pop();
const same = (a, b) => a.length === b.length && a.every((x, i) => x === b[i]);

// The index of a number in an array of this shape, in row-major order, and back.
function unravel(number, shape) {
  const index = [];
  for (let k = shape.length - 1; k >= 0; k -= 1) {
    index[k] = number % shape[k];
    number = Math.floor(number / shape[k]);
  }
  return index;
}
const ravel = (index, shape) => index.reduce((at, i, k) => at * shape[k] + i, 0);

// A canvas that is as wide as its parent, with a context whose unit is a pixel of the page.
function canvas(parent, height, label) {
  const made = element("canvas"),
    width = parent.clientWidth,
    scale = window.devicePixelRatio || 1;
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", label);
  made.width = Math.round(width * scale);
  made.height = Math.round(height * scale);
  made.style.height = `${height}px`;
  parent.append(made);
  const context = made.getContext("2d");
  context.scale(scale, scale);
  return {made, context, width, height};
}

function mixed(low, high, part) {
  const parse = (text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
  const a = parse(low),
    b = parse(high);
  return `rgb(${a.map((x, i) => Math.round(x + (b[i] - x) * part)).join(",")})`;
}
