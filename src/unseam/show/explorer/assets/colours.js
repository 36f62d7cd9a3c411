// Colours that every eye tells apart: vermilion and blue for more and less, and one palette a kind of factor.

let UP = [213, 94, 0];
let DOWN = [0, 114, 178];
const NAMES = [
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#e69f00",
  "#56b4e9",
  "#8c6bb1",
  "#737373",
  "#b2a800",
  "#a6761d",
];
const ORDER = [
  [94, 60, 150],
  [59, 82, 139],
  [33, 145, 140],
  [94, 201, 98],
  [230, 210, 40],
]; // dark to light, as viridis
const ROUND = [
  [208, 80, 60],
  [190, 150, 50],
  [70, 150, 90],
  [50, 140, 190],
  [120, 90, 180],
  [208, 80, 60],
]; // ends meet

// Take the page's own vermilion and blue: they are brighter on a dark page.
export function adopt() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) =>
    [1, 3, 5].map((i) =>
      parseInt(
        style
          .getPropertyValue(name)
          .trim()
          .slice(i, i + 2),
        16,
      ),
    );
  [UP, DOWN] = [read("--up"), read("--down")];
}

const ramp = (stops, share) => {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(at), stops.length - 2);
  return stops[i].map((from, c) => Math.round(from + (at - i) * (stops[i + 1][c] - from)));
};

// more classes than names: hues far from one another
const named = (i) => NAMES[i] ?? `hsl(${Math.round(137.5 * i) % 360} 55% ${i % 2 ? 40 : 62}%)`;

const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

// value -> colour, for a factor {kind, size} whose values lie in [low, high]; `classes`: one colour each, no order
export function factorColour(factor, low, high, classes) {
  if (classes) return (value) => named(value);
  const top = factor.kind === "cyclic" && factor.size ? factor.size : high;
  const stops = factor.kind === "cyclic" ? ROUND : ORDER;
  return (value) => css(ramp(stops, top > low ? (value - low) / (top - low) : 0.5));
}

// A signed value: its colour, and an opacity that grows with the square root so that faint changes are seen.
export const signed = (value, largest) => [value > 0 ? UP : DOWN, Math.sqrt(Math.min(Math.abs(value) / largest, 1))];

export function signedCss(value, largest = 1) {
  const [[r, g, b], opacity] = signed(value, largest);
  return `rgb(${r} ${g} ${b} / ${opacity.toFixed(3)})`;
}
