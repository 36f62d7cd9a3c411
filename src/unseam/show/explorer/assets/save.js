// Taking something home: the picture, traversals, the latent vector, the address. A name says what is inside.

import * as api from "/api.js";
import { h, notice } from "/dom.js";
import { kind, show } from "/picture.js";

const LEAST = 512; // pixels a side of a picture
const SAID = 6; // codes in a file's name

function hand(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const plain = (text) => text.replace(/[^\p{L}\p{N}._=-]+/gu, "-").slice(0, 80);

// RUN-m3-row12-z2=-1.09-z0=0.31.png: run, member, where it began, the most informative codes
function named(app, panel, what, ending) {
  const { run, member } = app.about.models.find((m) => m.model === panel.model);
  const start = app.input ? plain(app.input.caption.replace(/^row /, "row")) : "prior";
  const parts = [plain(run), `m${member}`, app.aligned ? "aligned" : "", what || start];
  return `${parts.filter(Boolean).join("-")}.${ending}`;
}

export const codesOf = (panel, z = panel.z) =>
  [...panel.info.latents]
    .sort((a, b) => b.active - a.active)
    .slice(0, SAID)
    .map(({ latent }) => `z${latent}=${z[latent].toFixed(2)}`)
    .join("-");

// Images by whole pixels, drawings drawn again, until the shorter side has LEAST pixels.
function enlarged(app, panel) {
  const { shape } = app.about.data;
  const canvas = h("canvas");
  const how = { cloud: panel.info.cloud, behind: app.input?.x, columns: panel.arrows, scale: 3, ground: true };
  show(canvas, panel.x, shape, how);
  if (kind(shape) !== "image") return canvas;
  const times = Math.max(1, Math.ceil(LEAST / Math.min(canvas.width, canvas.height)));
  const large = h("canvas", { width: times * canvas.width, height: times * canvas.height });
  const context = large.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, large.width, large.height);
  return large;
}

export function savePicture(app, panel) {
  const start = named(app, panel, "", "png").slice(0, -4);
  enlarged(app, panel).toBlob((blob) => hand(blob, `${start}-${codesOf(panel)}.png`));
}

// Traversals from the current point, or (with `to`) the way to another, drawn by the server.
export async function film(app, panel, { z = panel.z, to, kind: what }, words = "") {
  try {
    const blob = await api.film({ ...panel.point(z), to, kind: what });
    const name = named(app, panel, words, "").slice(0, -1);
    hand(blob, `${name}-${to ? "way" : `traversals-${codesOf(panel, z)}`}.${what === "gif" ? "gif" : "png"}`);
  } catch (error) {
    notice(error.message, true);
  }
}

export function saveLatents(app, panel) {
  const { run, member } = app.about.models.find((m) => m.model === panel.model);
  const names = Object.fromEntries(panel.info.latents.filter((l) => l.name).map((l) => [l.latent, l.name]));
  const point = { aligned: app.aligned, row: app.input?.row ?? null, z: panel.z, start: panel.start, names };
  const content = new Blob([JSON.stringify({ run, member, ...point }, null, 1)], { type: "application/json" });
  hand(content, named(app, panel, "", "json"));
}

export async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    notice("The address is in your clipboard.");
  } catch {
    notice(location.href);
  }
}
