// Shows the plots below Locust's page while our tab is the one looked at.
(function () {
  const frame = document.createElement("iframe");
  frame.id = "wallaroo-plots";
  frame.title = "Latency and load";
  frame.style.cssText = "width:100%;height:1700px;border:0;display:none";
  document.body.appendChild(frame);
  setInterval(function () {
    const ours = new URLSearchParams(window.location.search).get("tab") === "wallaroo";
    if (ours && !frame.src) frame.src = "./wallaroo/plots";
    frame.style.display = ours ? "block" : "none";
  }, 200);
})();
