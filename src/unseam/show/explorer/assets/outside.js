// Is a point where the data lies? Said of active latents only: a passive one moves nothing.

import { number } from "/dom.js";

const called = ({ latent, name }) => name || `z${latent}`;

// The latents that are beyond the range of 99 % of their codes, and by how much.
export const beyond = (latents, z) =>
  latents
    .filter((l) => l.active)
    .map((l) => ({ ...l, by: Math.max(l.within[0] - z[l.latent], z[l.latent] - l.within[1]) }))
    .filter((l) => l.by > 1e-6);

// The distance to the nearest code, each active latent in units of its spread.
function nearest({ latents, codes }, z) {
  const active = latents.filter((l) => l.active && l.std > 0);
  let best = Infinity;
  for (let at = 0; at < codes.length; at += latents.length) {
    let sum = 0;
    for (const { latent, std } of active) sum += ((codes[at + latent] - z[latent]) / std) ** 2;
    if (sum < best) best = sum;
  }
  return Math.sqrt(best);
}

// A sentence, or "" where the data is near.
export function outside(info, z) {
  const far = beyond(info.latents, z).sort((a, b) => b.by / b.std - a.by / a.std);
  const words = far
    .slice(0, 3)
    .map((l) => `${called(l)} is ${number(l.by, 2)} beyond ${l.within.map((v) => number(v, 2)).join(" … ")}`);
  const more = far.length > 3 ? ` and ${far.length - 3} more latents are` : "";
  if (words.length) return `Outside the data: ${words.join("; ")}${more} (the range of 99 % of the codes).`;
  const distance = nearest(info, z);
  if (!(distance > info.near)) return "";
  return (
    `Far from every code: the nearest is ${number(distance, 2)} standard deviations away; ` +
    `99 % of the codes have another within ${number(info.near, 2)}.`
  );
}
