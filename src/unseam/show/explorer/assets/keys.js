// Buttons, keys, the file that is dropped, light and dark.

import { adopt } from "/colours.js";
import { byId, notice, rowOf } from "/dom.js";

const KEYS = {
  n: "next",
  p: "previous",
  s: "random",
  d: "draw",
  u: "undo",
  y: "redo",
  r: "reset",
  a: "align",
  l: "link",
  w: "between",
  t: "theme",
  "?": "help",
};
const THEMES = ["auto", "light", "dark"];

export function listen(app, actions) {
  actions.theme = () => theme(app, THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % 3]);
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
  byId("row").addEventListener("change", () => rowTyped(app));
  byId("file").addEventListener("change", () => {
    if (byId("file").files.length) app.own(byId("file").files[0]);
    byId("file").value = "";
  });
  document.addEventListener("keydown", (event) => pressed(app, actions, event));
  addEventListener("hashchange", () => location.reload()); // an address was typed or pasted
  dropping(app);
  theme(app, localStorage.getItem("unseam-theme") ?? "auto");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => repaint(app));
}

function rowTyped(app) {
  const row = rowOf(byId("row"), app.about.data.rows, app.input?.row);
  if (row !== undefined && row !== app.input?.row) app.load(row);
}

function pressed(app, actions, event) {
  const key = event.key.toLowerCase();
  if ((event.ctrlKey || event.metaKey) && key === "z") {
    event.preventDefault();
    return actions[event.shiftKey ? "redo" : "undo"]();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return undefined;
  if (key === "escape") return notice("");
  const typing = event.target.matches("input:not([type=range]), select, textarea");
  if (typing) return undefined;
  if (/^[1-9]$/.test(key)) return app.panels[0].sliders[key - 1]?.range.focus();
  const name = key === "c" ? (app.axes === "latents" ? "singular" : "latents") : KEYS[key];
  if (!name || byId(name).hidden || byId(name).disabled) return undefined;
  event.preventDefault();
  return actions[name]();
}

function dropping(app) {
  const over = (is) => document.body.classList.toggle("dropping", is);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    over(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget === null && over(false));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    if (event.dataTransfer.files.length) app.own(event.dataTransfer.files[0]);
  });
}

function theme(app, name) {
  document.documentElement.dataset.theme = THEMES.includes(name) ? name : "auto";
  localStorage.setItem("unseam-theme", document.documentElement.dataset.theme);
  byId("theme").textContent = { auto: "Auto", light: "Light", dark: "Dark" }[document.documentElement.dataset.theme];
  repaint(app);
}

function repaint(app) {
  adopt();
  for (const panel of app.panels) {
    panel.scatter.draw();
    panel.paint();
    panel.sketch();
  }
}
