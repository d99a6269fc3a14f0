// A changed example as a link: its text is in the fragment, which no server sees.

export async function packed(value) {
  const stream = new Blob([JSON.stringify(value)]).stream();
  const buffer = await new Response(
    stream.pipeThrough(new CompressionStream("deflate-raw")),
  ).arrayBuffer();
  const text = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export async function unpacked(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const stream = new Blob([Uint8Array.from(plain, (char) => char.charCodeAt(0))]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("deflate-raw"))).json();
}

/** Put a link to this page, with a fragment, into the clipboard and the address. */
export async function share(fragment) {
  const url = new URL(location.href);
  url.hash = new URLSearchParams(fragment).toString();
  history.replaceState(null, "", url);
  try {
    await navigator.clipboard.writeText(url.href);
    return "The link is copied.";
  } catch {
    return "The link is in the address bar.";
  }
}

export function download(name, base64) {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type: "application/zip" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
