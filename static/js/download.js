// A download whose length nobody knows before: how much of it is written, where it takes longer than some seconds.
"use strict";

const SHOWN_AFTER_MS = 5000;
const shown = document.getElementById("download-progress");

document.querySelectorAll("a[data-progress]").forEach((link) => {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const token = window.crypto.getRandomValues(new Uint32Array(4)).join("-");
    const socket = new WebSocket(`${window.location.origin.replace("http", "ws")}/ws/downloads/${token}/`);
    const began = Date.now();
    socket.addEventListener("message", (message) => {
      const share = Number(message.data);
      shown.querySelector("progress").value = share;
      shown.querySelector("span").textContent = `${Math.floor(100 * share)} %`;
      shown.hidden = Date.now() - began < SHOWN_AFTER_MS;
      if (share === 1) socket.close();
    });
    socket.addEventListener("close", () => { shown.hidden = true; });
    // Without a socket there is a download all the same.
    const begin = once(() => download(`${link.href}?progress=${token}`));
    socket.addEventListener("open", begin);
    socket.addEventListener("close", begin);
  });
});

function once(work) {
  let isDone = false;
  return () => {
    if (!isDone) work();
    isDone = true;
  };
}

// A link of its own, for a change of the page's address would close the socket in some browsers.
function download(address) {
  const link = document.createElement("a");
  [link.href, link.download] = [address, ""];
  link.click();
}
