// Following a singular vector's curve with a slider: from where the component was taken up, t forth or back.

import * as api from "/api.js";
import { notice, number } from "/dom.js";

const sideOf = (t) => (t < 0 ? "back" : "forth");

export async function along(panel, component, t, settled, fresh) {
  if (panel.app.busy) return panel.refresh();
  panel.app.before(`${panel.letter}v${component}`, fresh);
  if (panel.curve?.component !== component) panel.curve = { component, base: panel.z, sides: {}, t: 0 };
  const { curve } = panel;
  curve.t = t;
  panel.sliders[component].set(t);
  curve.sides[sideOf(t)] ??= ask(panel, component, t >= 0);
  const found = await curve.sides[sideOf(t)];
  if (panel.curve !== curve || sideOf(curve.t) !== sideOf(t)) return undefined; // something else was done meanwhile
  if (!found) return panel.move(curve.base);
  panel.move(ride(curve, found), curve);
  return panel.app.moved(panel, settled);
}

// The curve one way; null, and a word to the user, when it cannot be had.
async function ask(panel, component, forward) {
  const slider = panel.sliders[component];
  slider.busy(true);
  try {
    return await api.curve({ ...panel.point(panel.curve.base), component, forward });
  } catch (error) {
    notice(error.message, true);
    return null;
  } finally {
    slider.busy(false);
  }
}

// The point at curve.t, between two of those found.
function ride(curve, { z, step, reason, meets }) {
  const last = (z.length - 1) * step;
  const length = Math.min(Math.abs(curve.t), last);
  if (Math.abs(curve.t) > last) notice(`This curve ends ${number(last, 2)} from its start: ${reason}.`);
  else if (meets !== null && length >= meets * step)
    notice("Two singular values meet on this curve; beyond, its direction is the nearest one.");
  curve.t = Math.sign(curve.t) * length;
  const i = Math.min(Math.floor(length / step), z.length - 1);
  const to = z[Math.min(i + 1, z.length - 1)];
  return z[i].map((v, k) => v + (length / step - i) * (to[k] - v));
}
