"use strict";
// Pages opened from disk may not start workers, and the site's search is one: there it runs in a hidden frame instead.
window.IFrameWorker = class extends EventTarget {
  constructor(address) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    const load = (url) => new Promise((done, failed) => {
      const script = inside.document.createElement("script");
      Object.assign(script, { src: url, onload: done, onerror: failed });
      inside.document.body.append(script);
    });
    inside.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => load(url)), Promise.resolve());
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    this.ready = load(new URL(address, document.baseURI).href);
  }
  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
  }
  terminate() { this.frame.remove(); }
};
if (location.protocol === "file:") window.Worker = window.IFrameWorker;
