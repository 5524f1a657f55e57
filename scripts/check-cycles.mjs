// Circular imports fail under SWC at run time ("Cannot access 'A' before initialization"), so none may exist.
// Type-only imports vanish when compiled and are not followed.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

const IMPORT = /^\s*(?:import|export)\s+(?!type\b)(?:[^'";]*?\bfrom\s+)?['"](\.{1,2}\/[^'"]+)['"]/gm;

/** The TypeScript files under the folders that exist, generated code left out. */
function sources(root, folders) {
  return folders.flatMap((folder) => {
    const at = path.join(root, folder);
    if (!statSync(at, { throwIfNoEntry: false })) return [];
    return readdirSync(at, { recursive: true })
      .filter((file) => file.endsWith('.ts') && !file.startsWith(`generated${path.sep}`))
      .map((file) => path.join(at, file));
  });
}

/** Every circular chain of imports below `root`, each as the list of its files, the first repeated at the end. */
export function findCycles(root, folders = ['src', 'simulator', 'demo', 'bench', 'test']) {
  const files = new Set(sources(root, folders));
  const edges = new Map();
  for (const file of files) {
    const targets = [...readFileSync(file, 'utf8').matchAll(IMPORT)]
      .map(([, to]) => path.join(path.dirname(file), to.replace(/\.js$/, '.ts')))
      .filter((to) => files.has(to));
    edges.set(file, targets);
  }
  const cycles = [];
  const done = new Set();
  const trail = [];
  const visit = (file) => {
    if (trail.includes(file)) {
      cycles.push([...trail.slice(trail.indexOf(file)), file].map((f) => path.relative(root, f)));
      return;
    }
    if (done.has(file)) return;
    trail.push(file);
    for (const to of edges.get(file)) visit(to);
    trail.pop();
    done.add(file);
  };
  for (const file of files) visit(file);
  return cycles;
}
