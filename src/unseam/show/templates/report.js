"use strict";
// Sliders show the frame of their value; links and points show their member; play sweeps all sliders of a member.
const show = (slider) => {
  const card = slider.closest(".card");
  const text = slider.dataset.values.split(" ")[slider.value];
  card.style.setProperty("--k", slider.value);
  slider.setAttribute("aria-valuetext", text);
  slider.parentElement.querySelector("output").textContent = text;
  card.querySelectorAll(".rings circle").forEach((ring, k) => ring.classList.toggle("on", k === Number(slider.value)));
};
document.querySelectorAll("input[type=range]").forEach((slider) => {
  slider.addEventListener("input", () => show(slider));
  show(slider);
});

const members = [...document.querySelectorAll("article.member")];
const choose = (id) => {
  const chosen = members.find((member) => member.id === id);
  if (!chosen) return false;
  members.forEach((member) => { member.hidden = member !== chosen; });
  document.querySelectorAll("#members nav a").forEach((link) => {
    link.setAttribute("aria-current", link.hash === "#" + id ? "true" : "false");
  });
  return true;
};
if (members.length) choose(members[0].id);
const follow = () => {
  const id = location.hash.slice(1);
  if (choose(id)) document.getElementById(id).scrollIntoView();
};
addEventListener("hashchange", follow);
follow();
const points = [...document.querySelectorAll('svg a[href*="member-"]')];
points.forEach((point) => {
  point.dataset.at = point.getAttribute("href");
  const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
  title.textContent = point.getAttribute("aria-label");
  point.prepend(title);
  if (!members.some((member) => "#" + member.id === point.getAttribute("href"))) point.removeAttribute("href");
});

// On a page with several runs, a run's row or name brings its points forward.
document.querySelectorAll("[data-run]").forEach((part) => {
  const only = (run) => points.forEach((point) => {
    point.classList.toggle("dim", run !== null && !point.dataset.at.startsWith("#run-" + run + "-"));
  });
  ["mouseenter", "focusin"].forEach((name) => part.addEventListener(name, () => only(part.dataset.run)));
  ["mouseleave", "focusout"].forEach((name) => part.addEventListener(name, () => only(null)));
});

document.querySelectorAll("button.play").forEach((button) => {
  let timer = 0;
  button.addEventListener("click", () => {
    const playing = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(playing));
    button.textContent = playing ? "❚❚ pause" : "▶ play";
    clearInterval(timer);
    let step = 0;
    if (playing) timer = setInterval(() => {
      step += 1;
      button.closest("article").querySelectorAll("input[type=range]").forEach((slider) => {
        const last = Number(slider.max);
        slider.value = last - Math.abs((step + last) % (2 * last) - last);
        show(slider);
      });
    }, 150);
  });
});
