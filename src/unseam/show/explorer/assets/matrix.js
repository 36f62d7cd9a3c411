// The geometry at a point: cosines between the columns of the Jacobian, its singular values, and the cost in nats.

import { signedCss } from "/colours.js";
import { h, number, svg } from "/dom.js";

// Cosines of the given latents, in this order; a cell's title says what the pair costs.
export function cosineMatrix(latents, cosines, pairs) {
  const [cell, edge] = [24, 26];
  const size = edge + cell * latents.length;
  const picture = svg("svg", { viewBox: `0 0 ${size} ${size}`, class: "matrix", role: "img", "aria-label": describe(latents, cosines) });
  latents.forEach((i, a) => {
    const middle = edge + (a + 0.5) * cell;
    picture.append(svg("text", { x: middle, y: edge - 8, class: "middle" }, `z${i}`));
    picture.append(svg("text", { x: edge - 6, y: middle + 3.5, class: "last" }, `z${i}`));
    latents.forEach((j, b) => picture.append(one(i, j, edge + b * cell, edge + a * cell, cell, cosines[i][j], pairs[i][j])));
  });
  return picture;
}

function one(i, j, x, y, cell, cosine, cost) {
  const own = i === j;
  const words = own ? `z${i}` : `cos(J${i}, J${j}) = ${number(cosine)}; the pair costs ${number(cost, 2)} nats`;
  const box = svg("rect", { x: x + 0.75, y: y + 0.75, width: cell - 1.5, height: cell - 1.5, rx: 3 });
  box.setAttribute("class", own ? "own" : "cell");
  if (!own) box.setAttribute("fill", signedCss(cosine * Math.abs(cosine)));
  const group = svg("g", {}, svg("title", {}, words), svg("rect", { x: x + 0.75, y: y + 0.75, width: cell - 1.5, height: cell - 1.5, rx: 3, class: "ground" }), box);
  if (!own) group.append(svg("text", { x: x + cell / 2, y: y + cell / 2 + 2.6, class: "middle value" }, Math.abs(cosine).toFixed(2).replace(/^0/, "")));
  return group;
}

function describe(latents, cosines) {
  const pairs = latents.flatMap((i, a) => latents.slice(a + 1).map((j) => [Math.abs(cosines[i][j]), i, j]));
  if (!pairs.length) return "one active latent, nothing to compare";
  const [most, i, j] = pairs.reduce((x, y) => (x[0] >= y[0] ? x : y));
  return `Cosines between Jacobian columns; the largest is ${number(most)}, between z${i} and z${j}`;
}

// One bar a singular value, the largest first.
export function singularValues(values) {
  const [width, height, gap] = [240, 84, values.length > 20 ? 1 : 4];
  const step = width / values.length;
  const most = Math.max(...values, 1e-12);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "bars", role: "img", "aria-label": `Singular values ${values.map((s) => number(s, 2)).join(", ")}` });
  values.forEach((s, i) => {
    const tall = Math.max((s / most) * (height - 16), 1);
    const [x, w] = [i * step + gap / 2, step - gap];
    picture.append(svg("g", {}, svg("title", {}, `s${i + 1} = ${number(s)}`), svg("rect", { x, y: height - tall, width: w, height: tall, rx: 1.5 })));
    if (step >= 20) picture.append(svg("text", { x: x + w / 2, y: height - tall - 4, class: "middle" }, number(s, 2)));
  });
  return picture;
}

// What mixing costs here, in words.
export function costWords(cost, beta, latents) {
  const share = cost / beta;
  const how = share < 0.005 ? "the columns are orthogonal here" : share < 0.05 ? "the columns are nearly orthogonal here" : share < 0.3 ? "some latents mix here" : "latents mix here";
  return h("p", { class: "cost" }, h("strong", {}, number(cost, 2)), " nats entanglement cost", h("small", {}, latents > 1 ? how : "one active latent: nothing can mix"));
}
