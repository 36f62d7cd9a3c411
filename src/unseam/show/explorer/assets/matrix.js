// The geometry at a point: cosines between the columns of the Jacobian, its singular values, and the cost in nats.

import { signedCss } from "/colours.js";
import { h, number, svg } from "/dom.js";

// Cosines of the given latents, in this order; a cell's title says what the pair costs.
export function cosineMatrix(latents, cosines, pairs) {
  const [cell, edge] = [24, 22];
  const size = edge + cell * latents.length;
  const picture = svg("svg", {
    viewBox: `0 0 ${size} ${size}`,
    width: 1.75 * size,
    class: "matrix",
    role: "img",
    "aria-label": describe(latents, cosines),
  });
  latents.forEach((i, a) => {
    const middle = edge + (a + 0.5) * cell;
    picture.append(svg("text", { x: middle, y: edge - 6, class: "middle" }, `z${i}`));
    picture.append(svg("text", { x: edge - 6, y: middle + 3.5, class: "last" }, `z${i}`));
    latents.forEach((j, b) =>
      picture.append(one(i, j, edge + b * cell, edge + a * cell, cell, cosines[i][j], pairs[i][j])),
    );
  });
  return picture;
}

function one(i, j, x, y, cell, cosine, cost) {
  const own = i === j;
  const words = own ? `z${i}` : `cos(J${i}, J${j}) = ${number(cosine)}; the pair costs ${number(cost, 2)} nats`;
  const box = svg("rect", { x: x + 0.75, y: y + 0.75, width: cell - 1.5, height: cell - 1.5, rx: 3 });
  box.setAttribute("class", own ? "own" : "cell");
  if (!own) box.setAttribute("fill", signedCss(cosine * Math.abs(cosine)));
  const group = svg(
    "g",
    {},
    svg("title", {}, words),
    svg("rect", { x: x + 0.75, y: y + 0.75, width: cell - 1.5, height: cell - 1.5, rx: 3, class: "ground" }),
    box,
  );
  if (!own)
    group.append(
      svg(
        "text",
        { x: x + cell / 2, y: y + cell / 2 + 2.6, class: "middle value" },
        Math.abs(cosine).toFixed(2).replace(/^0/, ""),
      ),
    );
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
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    class: "bars",
    role: "img",
    "aria-label": `Singular values ${values.map((s) => number(s, 2)).join(", ")}`,
  });
  values.forEach((s, i) => {
    const tall = Math.max((s / most) * (height - 16), 1);
    const [x, w] = [i * step + gap / 2, step - gap];
    picture.append(
      svg(
        "g",
        {},
        svg("title", {}, `s${i + 1} = ${number(s)}`),
        svg("rect", { x, y: height - tall, width: w, height: tall, rx: 1.5 }),
      ),
    );
    if (step >= 20 && s > 0.01 * most)
      picture.append(svg("text", { x: x + w / 2, y: height - tall - 4, class: "middle" }, number(s, 2)));
  });
  return picture;
}

// What mixing costs here, and which pair pays most of it. Below 0.02 beta nats a pair does not count as mixed.
export function costWords({ cost, pairs }, beta) {
  const all = pairs.flatMap((row, i) => row.slice(i + 1).map((nats, j) => [nats, i, i + 1 + j]));
  const [most, i, j] = all.reduce((a, b) => (b[0] > a[0] ? b : a), [0, 0, 0]);
  const how =
    most < 0.02 * beta ? "no two latents are mixed here" : `the most between z${i} and z${j}: ${number(most, 2)} nats`;
  return h("p", { class: "cost" }, h("strong", {}, number(cost, 2)), " nats entanglement cost", h("small", {}, how));
}
