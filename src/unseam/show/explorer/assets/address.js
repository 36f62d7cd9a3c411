// The address holds the state: where this began, each model's point, and how it is looked at.

const finite = (text) => {
  const values = text.split(",").map(Number);
  return text && values.every((v) => Number.isFinite(v) && Math.abs(v) <= 1000) ? values : null;
};

export function write(app) {
  const fields = {
    models: app.panels.map((p) => p.model).join(","),
    z: app.panels.map((p) => (p.z ?? []).map((v) => Number(v.toFixed(4))).join(",")).join(";"),
  };
  if (app.input?.row !== undefined) fields.row = app.input.row;
  if (app.aligned) fields.aligned = 1;
  if (app.axes !== "latents") fields.axes = app.axes;
  if (app.against !== "input") fields.against = app.against;
  if (app.panels.length > 1 && !app.linked) fields.linked = 0;
  if (app.way.shown && app.input?.row === app.way.from) fields.to = app.way.to;
  const text = new URLSearchParams(fields);
  for (const { scatter, broken } of app.panels) {
    if (broken) continue;
    for (const name of ["x", "y", "colour"]) text.append(name, scatter.view[name]);
    text.append("classes", scatter.view.classes === null ? "" : Number(scatter.view.classes));
  }
  history.replaceState(null, "", `#${text}`);
}

// What the address says, as far as it can be used with these models and this data.
export function read(about) {
  const fields = new URLSearchParams(location.hash.slice(1));
  const known = new Set(about.models.map((m) => m.model));
  const models = (fields.get("models") ?? "")
    .split(",")
    .filter((m) => known.has(m))
    .slice(0, 2);
  const asked = (name) => {
    const row = Number(fields.get(name) ?? NaN);
    return Number.isInteger(row) && row >= 0 && row < about.data.rows ? row : null;
  };
  const latent = (text) => (/^\d{1,4}$/.test(text ?? "") ? Number(text) : null);
  const view = (i) => ({
    x: latent(fields.getAll("x")[i]),
    y: latent(fields.getAll("y")[i]),
    colour: fields.getAll("colour")[i] ?? fields.get("colour"),
    classes: { 0: false, 1: true }[fields.getAll("classes")[i]] ?? null,
  });
  return {
    models: models.length ? models : about.shown,
    z: (fields.get("z") ?? "").split(";").map(finite),
    row: asked("row"),
    to: asked("to"), // the other end of the way, if it is shown
    aligned: fields.get("aligned") === "1",
    axes: fields.get("axes") === "singular" ? "singular" : "latents",
    against: fields.get("against") === "start" ? "start" : "input",
    linked: fields.get("linked") !== "0",
    views: [view(0), view(1)], // of the scatters, one a panel
  };
}
