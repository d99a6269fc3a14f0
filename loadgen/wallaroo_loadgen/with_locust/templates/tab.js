// Shows the live page in our tab, while that is the one looked at.
(function () {
  const frame = document.createElement("iframe");
  frame.id = "wallaroo-plots";
  frame.title = "Latency and load";
  frame.style.cssText = "position:absolute;left:0;width:100%;height:900px;border:0;display:none";
  document.body.appendChild(frame);
  setInterval(function () {
    const ours = new URLSearchParams(window.location.search).get("tab") === "wallaroo";
    if (ours && !frame.src) frame.src = "./wallaroo/plots";
    frame.style.display = ours ? "block" : "none";
    if (!ours) return;
    const table = document.querySelector("#root table");
    const bottom = table ? table.getBoundingClientRect().bottom + window.scrollY : 120;
    frame.style.top = bottom + 16 + "px";
    const page = frame.contentDocument && frame.contentDocument.documentElement;
    if (page && page.scrollHeight > 100) frame.style.height = page.scrollHeight + "px";
  }, 200);
})();
