// Taking something home: the picture, the latent vector, the address.

import { h, notice } from "/dom.js";

function hand(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const named = (app, panel, ending) =>
  `${app.about.models.find((m) => m.model === panel.model).run}-${panel.model}.${ending}`;

export const savePicture = (app, panel) =>
  panel.canvases.decoded.toBlob((blob) => hand(blob, named(app, panel, "png")));

export function saveLatents(app, panel) {
  const { run, member } = app.about.models.find((m) => m.model === panel.model);
  const content = { run, member, aligned: app.aligned, row: app.input?.row ?? null, z: panel.z, start: panel.start };
  hand(new Blob([JSON.stringify(content, null, 1)], { type: "application/json" }), named(app, panel, "json"));
}

export async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    notice("The address is in your clipboard.");
  } catch {
    notice(location.href);
  }
}
