// Observations on a canvas: images as pixels, points of the plane (or of space) as a cloud, other vectors as a line.

import { signed, signedCss } from "/colours.js";

export const kind = (shape) => (shape.length === 3 ? "image" : shape[0] === 2 || shape[0] === 3 ? "cloud" : "line");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

// x (C, H, W) in [0, 1] -> pixels; more or fewer channels than 3 are averaged to grey
function pixels(canvas, x, [channels, height, width], colour) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let i = 0, n = width * height; i < n; i++) image.data.set(colour(i, n, channels), 4 * i);
  context.putImageData(image, 0, 0);
}

const averaged = (x, i, n, channels) => {
  let sum = 0;
  for (let c = 0; c < channels; c++) sum += x[c * n + i];
  return sum / channels;
};

const photograph = (x) => (i, n, channels) => {
  const grey = channels === 3 ? 0 : 255 * averaged(x, i, n, channels);
  return channels === 3 ? [255 * x[i], 255 * x[n + i], 255 * x[2 * n + i], 255] : [grey, grey, grey, 255];
};

const signedPixels = (x, largest) => (i, n, channels) => {
  const [colour, opacity] = signed(averaged(x, i, n, channels), largest);
  return [...colour, 255 * opacity];
};

// A canvas for drawing, sharp on every screen; sizes are in CSS pixels from here on.
export function surface(canvas, width, height, { scale = window.devicePixelRatio || 1, ground = false } = {}) {
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  if (ground) context.fillStyle = style("--ground");
  if (ground) context.fillRect(0, 0, width, height);
  return context;
}

const extent = (values) => values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);

// A vector as a line over its components; `behind` is drawn fainter.
function line(canvas, x, { behind, ...how }) {
  const [width, height] = [300, 220];
  const context = surface(canvas, width, height, how);
  const [low, high] = extent([...x, ...(behind ?? []), 0]);
  const place = (v, i) => [
    8 + (i / Math.max(x.length - 1, 1)) * (width - 16),
    height - 8 - ((v - low) / (high - low || 1)) * (height - 16),
  ];
  const draw = (values, colour, thick, dots = values.length <= 40) => {
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = thick;
    context.beginPath();
    values.forEach((v, i) => context.lineTo(...place(v, i)));
    context.stroke();
    if (dots) values.forEach((v, i) => context.fillRect(place(v, i)[0] - 2, place(v, i)[1] - 2, 4, 4));
  };
  draw(new Array(x.length).fill(0), style("--rule"), 1, false);
  if (behind) draw([...behind], style("--faint"), 1.5);
  draw([...x], style("--accent"), 2);
}

// 2 numbers as they are, 3 seen from the side
const flat = (x, i = 0, n = x.length) =>
  n === 2 ? [x[i], x[i + 1]] : [x[i] + 0.4 * x[i + 1], x[i + 2] + 0.3 * x[i + 1]];

function cloud(canvas, x, { cloud: points, behind, columns = [], n, ...how }) {
  const size = 300;
  const context = surface(canvas, size, size, how);
  const places = Array.from({ length: points.length / n }, (_, i) => flat(points, i * n, n));
  const [[a, b], [c, d]] = [extent(places.map((p) => p[0])), extent(places.map((p) => p[1]))];
  const scale = (size - 70) / Math.max(b - a, d - c, 1e-9);
  const place = ([u, v]) => [size / 2 + (u - (a + b) / 2) * scale, size / 2 - (v - (c + d) / 2) * scale];
  const dot = (at, radius, colour) => {
    context.fillStyle = colour;
    context.beginPath();
    context.arc(...place(at), radius, 0, 2 * Math.PI);
    context.fill();
  };
  places.forEach((p) => dot(p, 1.3, style("--faint")));
  if (behind) dot(flat(behind), 5, style("--text"));
  context.strokeStyle = style("--up");
  context.lineWidth = 2;
  for (const [name, column] of columns) {
    // where half a step of each latent leads
    const to = place(flat(x.map((v, i) => v + column[i] / 2)));
    context.beginPath();
    context.moveTo(...place(flat(x)));
    context.lineTo(...to);
    context.stroke();
    context.fillStyle = style("--text");
    context.fillText(name, to[0] + 3, to[1] - 3);
  }
  dot(flat(x), 6, style("--accent"));
}

// Signed bars: a column of the Jacobian, or a difference, of a vector.
function bars(canvas, x, largest) {
  const [width, height] = [120, 80];
  const context = surface(canvas, width, height);
  const step = width / x.length;
  x.forEach((v, i) => {
    const tall = (Math.min(Math.abs(v) / largest, 1) * height) / 2;
    context.fillStyle = signedCss(v, largest);
    context.fillRect(i * step, v > 0 ? height / 2 - tall : height / 2, Math.max(step - (step > 4 ? 1 : 0), 0.5), tall);
  });
}

export function show(canvas, x, shape, more = {}) {
  const how = kind(shape);
  if (how === "image") pixels(canvas, x, shape, photograph(x));
  else if (how === "cloud") cloud(canvas, x, { ...more, n: shape[0] });
  else line(canvas, x, more);
}

export function showSigned(canvas, x, shape, largest) {
  if (kind(shape) === "image") pixels(canvas, x, shape, signedPixels(x, largest || 1));
  else bars(canvas, x, largest || 1);
}
