// Asking the server. Whatever it refuses becomes an Error that carries its one-line reason.

async function ask(path, request) {
  let reply;
  try {
    reply = await fetch(path, request);
  } catch {
    throw new Error("The server does not answer; is `unseam explore` still running?");
  }
  if (!reply.ok)
    throw new Error(reply.status === 500 ? "The server failed; its terminal says why." : await reply.text());
  return reply;
}

const query = (model, aligned) => `model=${encodeURIComponent(model)}&aligned=${aligned ? 1 : 0}`;
const post = (path, body) => ask(path, { method: "POST", body });
const json = async (reply) => (await reply).json();
const numbers = async (reply) => new Float32Array(await (await reply).arrayBuffer());

// float32 bytes, little endian, in base64
export function floats(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

export const about = () => json(ask("/api/about"));
export const model = (name, aligned) => json(ask(`/api/model?${query(name, aligned)}`));
export const alignment = (name) => json(ask(`/api/align?${query(name, false)}`));
export const twins = (name, other, aligned) =>
  json(ask(`/api/twins?${query(name, aligned)}&other=${encodeURIComponent(other)}`));
export const upload = (file) => numbers(post("/api/upload", file));
export const encode = (name, aligned, x) => json(post(`/api/encode?${query(name, aligned)}`, x));
export const decode = (point) => numbers(post("/api/decode", JSON.stringify(point)));
export const geometry = (point) => json(post("/api/geometry", JSON.stringify(point)));
export const film = async (wanted) => (await post("/api/film", JSON.stringify(wanted))).blob();
export const name = (model, latent, words) => json(post("/api/name", JSON.stringify({ model, latent, name: words })));
export const curve = (point) => json(post("/api/curve", JSON.stringify(point)));

export async function row(index) {
  const found = await json(ask(`/api/row?row=${encodeURIComponent(index)}`));
  return { ...found, x: floats(found.x) };
}

// A slider moves faster than a model decodes: one request is under way, and of those that wait only the newest is sent.
export class Latest {
  constructor(work, failed) {
    Object.assign(this, { work, failed, waiting: undefined, busy: false });
  }

  async ask(value) {
    this.waiting = value;
    if (this.busy) return;
    this.busy = true;
    while (this.waiting !== undefined) {
      const next = this.waiting;
      this.waiting = undefined;
      try {
        await this.work(next);
      } catch (error) {
        this.failed(error);
      }
    }
    this.busy = false;
  }
}
