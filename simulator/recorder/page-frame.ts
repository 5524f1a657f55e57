/** Text that is safe between tags and inside quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A shortened token: enough to distinguish two, too little to use. */
export function maskedToken(token: string): string {
  return `${token.slice(0, 4)}…`;
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5c6b7a; --line: #d5dde5; --paper: #fff; --ground: #f3f6f8;
  --accent: #0b6e69; --danger: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8edf2; --soft: #9fb0c0; --line: #33414f; --paper: #18212a;
  --ground: #10171e; --accent: #5fc9c1; --danger: #ff8a80; } }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 40rem; margin: 3rem auto; padding: 2rem; background: var(--paper); border: 1px solid var(--line);
  border-radius: 12px; }
h1 { margin: 0 0 .25rem; font-size: 1.4rem; } p.soft { margin: 0 0 1.5rem; color: var(--soft); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0 0 1.5rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; font-family: ui-monospace, monospace; }
fieldset { margin: 0 0 1.5rem; padding: .5rem 1rem .75rem; border: 1px solid var(--line); border-radius: 8px; }
label { display: grid; grid-template-columns: max-content 1fr; align-items: baseline; gap: .5rem; margin: .25rem 0; }
input { accent-color: var(--accent); }
output { display: block; margin: 0 0 1rem; font-size: 2rem; font-variant-numeric: tabular-nums; }
button, a.button { padding: .6rem 1.2rem; border: 0; border-radius: 8px; background: var(--accent); color: var(--paper);
  font: inherit; text-decoration: none; cursor: pointer; } p.buttons { display: flex; flex-wrap: wrap; gap: .5rem; }
button:disabled { opacity: .4; cursor: default; }
ul { margin: 1rem 0 1.5rem; padding: 0; list-style: none; }
li { display: flex; align-items: center; justify-content: space-between; gap: 1rem; margin: 0 0 .75rem; }
[role=status] { margin: 1.5rem 0 0; overflow-wrap: anywhere; }
.done { color: var(--accent); } .fault { color: var(--danger); } [hidden] { display: none; }
`;

/** A complete page of the platform's web app. `body` is HTML. */
export function pageFrame(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body><main>${body}</main></body>
</html>
`;
}

/** The page that explains why the recorder did not start. */
export function faultPage(faults: readonly string[]): string {
  const items = faults.map((fault) => `<li class="fault">${escapeHtml(fault)}</li>`).join('');
  return pageFrame('Recorder not started', `<h1>The recorder did not start</h1><ul>${items}</ul>`);
}
