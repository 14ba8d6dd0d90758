// The only script that a page waits for, and for this one it does not: the others come once the page stands there, whole
// and painted. Earlier they would share the processors with the painting, and none of them changes what is seen at first.
const { scripts } = document.currentScript.dataset;

function start() {
  requestAnimationFrame(() => setTimeout(async () => { // behind the frame that shows the page
    await Promise.all(scripts.split(" ").map((address) => import(address)));
    document.documentElement.dataset.scripted = "yes";
  }));
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
