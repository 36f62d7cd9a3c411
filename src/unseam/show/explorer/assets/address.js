// The address holds the state: where this began, each model's point, and how it is looked at.

const finite = (text) => {
  const values = text.split(",").map(Number);
  return text && values.every((v) => Number.isFinite(v) && Math.abs(v) <= 1000) ? values : null;
};

export function write(app) {
  const view = app.panels[0].scatter.view;
  const fields = {
    models: app.panels.map((p) => p.model).join(","),
    z: app.panels.map((p) => p.z.map((v) => Number(v.toFixed(4))).join(",")).join(";"),
  };
  if (app.input?.row !== undefined) fields.row = app.input.row;
  if (app.aligned) fields.aligned = 1;
  if (app.axes !== "latents") fields.axes = app.axes;
  if (app.against !== "input") fields.against = app.against;
  if (app.panels.length > 1 && !app.linked) fields.linked = 0;
  Object.assign(fields, { x: view.x, y: view.y, colour: view.colour });
  history.replaceState(null, "", `#${new URLSearchParams(fields)}`);
}

// What the address says, as far as it can be used with these models and this data.
export function read(about) {
  const fields = new URLSearchParams(location.hash.slice(1));
  const known = new Set(about.models.map((m) => m.model));
  const models = (fields.get("models") ?? "")
    .split(",")
    .filter((m) => known.has(m))
    .slice(0, 2);
  const row = Number(fields.get("row") ?? NaN);
  const latent = (name) => (/^\d{1,4}$/.test(fields.get(name) ?? "") ? Number(fields.get(name)) : null);
  return {
    models: models.length ? models : about.shown,
    z: (fields.get("z") ?? "").split(";").map(finite),
    row: Number.isInteger(row) && row >= 0 && row < about.data.rows ? row : null,
    aligned: fields.get("aligned") === "1",
    axes: fields.get("axes") === "singular" ? "singular" : "latents",
    against: fields.get("against") === "start" ? "start" : "input",
    linked: fields.get("linked") !== "0",
    view: { x: latent("x"), y: latent("y"), colour: fields.get("colour") },
  };
}
