"use strict";

const { variants, shown, charts, examples } = JSON.parse(document.getElementById("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const coarse = matchMedia("(pointer: coarse)");
const hidden = new Set(variants.slice(shown));

// Okabe and Ito's colours without the yellow, which is too pale on white; null is the ink of the page.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", null];
const SYMBOLS = [
  ["circle", "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z"],
  ["square", "M-3.6,-3.6H3.6V3.6H-3.6Z"],
  ["diamond", "M0,-5L5,0L0,5L-5,0Z"],
  ["triangle-up", "M0,-4.6L4.6,3.6H-4.6Z"],
  ["triangle-down", "M0,4.6L4.6,-3.6H-4.6Z"],
  ["cross", "M-4.5,-1.6H-1.6V-4.5H1.6V-1.6H4.5V1.6H1.6V4.5H-1.6V1.6H-4.5Z"],
  ["hexagon", "M-4.5,0L-2.2,-3.9H2.2L4.5,0L2.2,3.9H-2.2Z"],
];
const DASHES = [["solid", ""], ["dash", "6,3"], ["dot", "2,2.5"], ["dashdot", "7,3,2,3"]];

function look(variant) {
  const place = variants.indexOf(variant);
  const round = Math.floor(place / COLOURS.length);
  return {
    colour: COLOURS[place % COLOURS.length] ?? token("--ink"),
    symbol: SYMBOLS[(place + round) % SYMBOLS.length],
    dash: DASHES[round % DASHES.length],
    open: round % 2 === 1,
  };
}

function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function make(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "circle", "image", "rect", "text"].includes(name);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Plotly reads a subset of HTML in all of its texts, and names are anybody's.
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function number(value) {
  const size = Math.abs(value);
  const digits = size < 1 ? { maximumSignificantDigits: 4 } : { maximumFractionDigits: size >= 1000 ? 0 : 2 };
  return value.toLocaleString("en", digits);
}

const range = ({ low, high, runs }) => `${number(low)} to ${number(high)}, ${runs} seeds`;

function told(spread) {
  return spread.runs > 1 ? `${number(spread.mean)} (${range(spread)})` : number(spread.mean);
}

function line({ variant, x, y }, _, { length }) {
  const { colour, symbol, dash, open } = look(variant);
  const bounds = y.some(({ runs }) => runs > 1) && {
    x: [...x, ...[...x].reverse()],
    y: [...y.map(({ high }) => high), ...y.map(({ low }) => low).reverse()],
    fill: "toself",
    fillcolor: colour,
    opacity: Math.min(0.14, 0.7 / length),
    line: { width: 0 },
    mode: "lines",
    hoverinfo: "skip",
  };
  const middle = {
    x,
    y: y.map(({ mean }) => mean),
    text: y.map((spread, place) => `${plain(variant)}<br>${plain(x[place])}: ${told(spread)}`),
    hoverinfo: "text",
    mode: "lines+markers",
    line: { color: colour, width: 2, dash: dash[0] },
    marker: { color: colour, size: 7, symbol: symbol[0] + (open ? "-open" : ""), maxdisplayed: 16 },
  };
  return bounds ? [bounds, middle] : [middle];
}

function point({ variant, x, y }, chart) {
  const { colour, symbol, open } = look(variant);
  const bars = ([{ mean, low, high, runs }]) => ({
    visible: runs > 1,
    symmetric: false,
    array: [high - mean],
    arrayminus: [mean - low],
    color: colour,
    thickness: 1.3,
    width: 3,
  });
  return {
    x: [x[0].mean],
    y: [y[0].mean],
    error_x: bars(x),
    error_y: bars(y),
    text: [`${plain(variant)}<br>${plain(chart.y)}: ${told(y[0])}<br>${plain(chart.x)}: ${told(x[0])}`],
    hoverinfo: "text",
    mode: "markers",
    marker: { color: colour, size: 11, symbol: symbol[0] + (open ? "-open" : ""), line: { width: open ? 2 : 0 } },
  };
}

function axis(title) {
  return {
    title: { text: plain(title), standoff: 12 },
    automargin: true,
    gridcolor: token("--line"),
    linecolor: token("--line"),
    zeroline: false,
    ticks: "outside",
    tickcolor: token("--line"),
    fixedrange: coarse.matches,
  };
}

function chosen(figure) {
  const chart = charts[figure.dataset.chart][figure.querySelector("select")?.value ?? 0];
  return { chart, drawn: chart.series.filter(({ variant }) => !hidden.has(variant)) };
}

function cell(spread) {
  if (!spread) return make("td");
  return make("td", {}, number(spread.mean), ...(spread.runs > 1 ? [" ", make("small", {}, range(spread))] : []));
}

// The chart as a table, for those who want to read the numbers, or copy them.
function listValues(figure) {
  const details = figure.querySelector(".values");
  if (!details.open) return;
  const { chart, drawn } = chosen(figure);
  const isPoint = figure.dataset.chart === "costs";
  const places = chart.ticks.length ? chart.ticks : [...new Set(drawn.flatMap(({ x }) => x))].sort((a, b) => a - b);
  const heads = isPoint ? ["variant", chart.x, chart.y] : [chart.x, ...drawn.map(({ variant }) => variant)];
  const rows = isPoint
    ? drawn.map(({ variant, x, y }) => [variant, x[0], y[0]])
    : places.map((place) => [place, ...drawn.map(({ x, y }) => y[x.indexOf(place)])]);
  const table = details.querySelector("table");
  table.replaceChildren(
    make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...rows.map(([first, ...rest]) =>
      make("tr", {}, make("th", { scope: "row" }, first), ...rest.map(cell)))),
  );
}

function drawChart(figure) {
  listValues(figure);
  if (!window.Plotly) return;
  const id = figure.dataset.chart;
  const { chart, drawn } = chosen(figure);
  const traces = id === "costs" ? drawn.map((series) => point(series, chart)) : drawn.flatMap(line);
  const [x, y] = [axis(chart.x), axis(chart.y)];
  if (chart.ticks.length) Object.assign(x, { type: "category", categoryorder: "array", categoryarray: chart.ticks });
  const last = Math.max(...chart.series.flatMap((series) => series.x));
  if (["budgets", "curves"].includes(id) && last <= 12) x.dtick = 1;
  const font = { family: token("--sans"), size: 13, color: token("--ink") };
  const layout = {
    font,
    showlegend: false,
    xaxis: x,
    yaxis: y,
    margin: { l: 8, r: 12, t: 8, b: 8 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    hovermode: "closest",
    hoverlabel: { bgcolor: token("--soft"), bordercolor: token("--line"), font, align: "left" },
    dragmode: coarse.matches ? false : "zoom",
    uirevision: chart.name,
  };
  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [["toImage", "resetScale2d"]],
    toImageButtonOptions: { format: "svg", filename: `${document.querySelector("h1").textContent}-${id}` },
  };
  Plotly.react(figure.querySelector(".plot"), traces, layout, config);
  drawKey(figure, chart.series, id !== "costs");
}

function drawKey(place, series, lined) {
  const keys = series.map(({ variant }) => key(variant, lined));
  place.querySelector(".key").replaceChildren(...(shown < variants.length ? choices() : []), ...keys);
}

function choices() {
  const sets = { all: [], [`first ${shown}`]: variants.slice(shown), none: variants };
  return Object.entries(sets).map(([name, left]) => {
    const button = make("button", { type: "button", class: "choice" }, name);
    button.addEventListener("click", () => {
      hidden.clear();
      left.forEach((variant) => hidden.add(variant));
      redraw(button);
    });
    return make("li", {}, button);
  });
}

// A key is made anew with what it belongs to, and the focus stays where it was.
function redraw(button) {
  const owner = button.closest("figure, section");
  const place = [...owner.querySelectorAll(".key button")].indexOf(button);
  draw();
  owner.querySelectorAll(".key button")[place].focus();
}

function key(variant, lined) {
  const { colour, symbol, dash, open } = look(variant);
  const swatch = make("svg", { width: lined ? 34 : 14, height: 14, viewBox: lined ? "-17 -7 34 14" : "-7 -7 14 14", "aria-hidden": "true" });
  if (lined) swatch.append(make("line", { x1: -17, x2: 17, stroke: colour, "stroke-width": 2, "stroke-dasharray": dash[1] }));
  swatch.append(make("path", { d: symbol[1], fill: open ? token("--paper") : colour, stroke: colour, "stroke-width": open ? 1.6 : 0 }));
  const button = make("button", { type: "button", "aria-pressed": String(!hidden.has(variant)) }, swatch, variant);
  button.addEventListener("click", () => {
    if (!hidden.delete(variant)) hidden.add(variant);
    redraw(button);
  });
  return make("li", {}, button);
}

const pen = document.createElement("canvas").getContext("2d");

function widest(tokens, font) {
  pen.font = font;
  return Math.ceil(Math.max(0, ...tokens.map((text) => pen.measureText(text).width)));
}

function picture(weights, columns) {
  const canvas = make("canvas", { width: columns, height: weights.length });
  const context = canvas.getContext("2d");
  weights.forEach((row, y) => row.slice(0, columns).forEach((weight, x) => {
    context.fillStyle = `rgba(${token(weight < 0 ? "--below" : "--cell")}, ${Math.min(1, Math.abs(weight))})`;
    context.fillRect(x, y, 1, 1);
  }));
  return canvas.toDataURL();
}

function drawMap({ variant, source, target, weights, links }) {
  const [cell, size] = source.length > 24 ? [11, 10] : [16, 11];
  const font = `${size}px ${token("--sans")}`;
  const left = widest(target, font) + 8;
  const top = widest(source, font) + 8;
  const [width, height] = [source.length * cell, target.length * cell];
  const svg = make("svg", { width: left + width + 4, height: top + height + 2, "aria-hidden": "true" });
  svg.style.font = font;
  svg.append(
    make("image", { x: left, y: top, width, height, preserveAspectRatio: "none", href: picture(weights, source.length) }),
    make("rect", { class: "border", x: left - 0.5, y: top - 0.5, width: width + 1, height: height + 1 }),
  );
  source.forEach((text, place) => {
    svg.append(make("text", { transform: `translate(${left + (place + 0.75) * cell},${top - 5}) rotate(-90)` }, text));
  });
  target.forEach((text, place) => {
    svg.append(make("text", { x: left - 5, y: top + (place + 0.75) * cell, "text-anchor": "end" }, text));
  });
  for (const [from, to] of links) {
    const middle = { cx: left + (from + 0.5) * cell, cy: top + (to + 0.5) * cell, r: 0.34 * cell };
    svg.append(make("circle", { class: "halo", ...middle }), make("circle", { class: "gold", ...middle }));
  }
  const output = make("output");
  const tell = (x, y) => {
    const weight = weights[y]?.[x];
    output.textContent = weight === undefined ? "" : `${target[y]} ← ${source[x]}: ${weight.toFixed(3)}`;
  };
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    tell(...[event.clientX - box.x - left, event.clientY - box.y - top].map((at) => Math.floor(at / cell)));
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);  // of a finger, which does not hover
  const label = `attention of ${variant}: arrow keys go from weight to weight`;
  const frame = make("div", { class: "frame", tabindex: 0, role: "group", "aria-label": label }, svg);
  walk(frame, svg, { left, top, cell, sizes: [source.length, target.length] }, tell);
  return make("div", { class: "map" }, make("h3", {}, variant), frame, output);
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// The first arrow key goes to the first weight.
function walk(frame, svg, { left, top, cell, sizes }, tell) {
  const cursor = make("rect", { class: "cursor", width: cell, height: cell, x: left, y: top });
  svg.append(cursor);
  let at = null;
  frame.addEventListener("keydown", (event) => {
    const step = ARROWS[event.key];
    if (!step) return;
    event.preventDefault();
    at = at ? at.map((place, axis) => Math.min(Math.max(place + step[axis], 0), sizes[axis] - 1)) : [0, 0];
    cursor.setAttribute("x", left + at[0] * cell);
    cursor.setAttribute("y", top + at[1] * cell);
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
    tell(...at);
  });
}

function drawMaps() {
  const place = document.getElementById("choose-example")?.value ?? 0;
  const maps = examples[place]?.maps ?? [];
  document.querySelector(".maps")?.replaceChildren(...maps.filter(({ variant }) => !hidden.has(variant)).map(drawMap));
  const below = document.querySelector(".scale .below");
  if (below) below.hidden = !maps.some(({ weights }) => weights.some((row) => row.some((weight) => weight < 0)));
  if (maps.length) drawKey(document.getElementById("attention"), maps, false);
}

function draw() {
  document.querySelectorAll("[data-chart]").forEach(drawChart);
  drawMaps();
}

for (const figure of document.querySelectorAll("[data-chart]")) {
  figure.querySelector("select")?.addEventListener("change", () => drawChart(figure));
  figure.querySelector(".values").addEventListener("toggle", () => listValues(figure));
}
document.getElementById("choose-example")?.addEventListener("change", drawMaps);
document.getElementById("choose-sample")?.addEventListener("change", ({ target }) => {
  document.querySelectorAll("ol.samples").forEach((list, place) => { list.hidden = place !== Number(target.value); });
});

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.querySelectorAll("thead th")];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const rows = [...table.tBodies[0].rows].map((row) => ({ row, value: row.cells[column].dataset.value }));
    const numeric = rows.every(({ value }) => value === undefined || !Number.isNaN(Number(value)));
    const first = numeric ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") !== first ? first : numeric ? "ascending" : "descending";
    const sign = order === "ascending" ? 1 : -1;
    rows.sort((a, b) => {
      if (a.value === undefined || b.value === undefined) return (a.value === undefined) - (b.value === undefined);
      return sign * (numeric ? a.value - b.value : a.value.localeCompare(b.value, "en", { numeric: true }));
    });
    heads.forEach((other) => other.setAttribute("aria-sort", other === head ? order : "none"));
    table.tBodies[0].append(...rows.map(({ row }) => row));
  }));
}

dark.addEventListener("change", draw);
// Colours are read from the page, which prints in the light ones.
matchMedia("print").addEventListener("change", draw);
drawMaps();

// Plotly is most of the page, and packed.
async function unpack() {
  const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  document.head.append(make("script", {}, await new Response(stream).text()));
  draw();
}

unpack().catch((error) => {
  const told = `This browser cannot unpack the charts (${error.message}): open the page in one of 2023 or later.`;
  document.querySelectorAll(".plot").forEach((plot) => { plot.replaceChildren(make("p", { class: "empty" }, told)); });
});
