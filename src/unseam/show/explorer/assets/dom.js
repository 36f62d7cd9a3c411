// Making elements. Text always goes in as text: nothing here, or anywhere else, parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const h = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);

export const options = (select, entries, chosen) =>
  select.replaceChildren(...entries.map(([value, label]) => h("option", { value, selected: value === chosen }, label)));

// The row that a box asks for; where it asks for none, `known` is put back and the user is told.
export function rowOf(box, rows, known) {
  const row = box.valueAsNumber;
  if (Number.isInteger(row) && row >= 0 && row < rows) return row;
  box.value = known ?? "";
  notice(`row must be a whole number 0..${rows - 1}`, true);
  return known;
}

let fading = 0;

// One line under the toolbar, until it is closed or has been read: what happened, or what went wrong.
export function notice(text, wrong = false) {
  const line = byId("notice");
  line.textContent = text;
  line.classList.toggle("wrong", wrong);
  clearTimeout(fading);
  if (text) fading = setTimeout(() => notice(""), Math.max(wrong ? 12000 : 6000, 70 * text.length));
}

export const number = (x, digits = 3) =>
  x === 0 ? "0" : Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5 ? x.toExponential(1) : String(Number(x.toPrecision(digits)));

// What sticks to the top of the page, in pixels: pictures stick below it.
export function room() {
  const [top, told] = [document.querySelector(".top"), byId("told")];
  const note = () => {
    document.documentElement.style.setProperty("--top", `${top.offsetHeight}px`);
    document.documentElement.style.setProperty("--told", `${told.offsetHeight}px`);
  };
  const watch = new ResizeObserver(note);
  [top, told].forEach((element) => watch.observe(element));
}
