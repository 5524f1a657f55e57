// npm run audit: known weaknesses of what is handed on, the console's packages among it, as the registry tells them. Where it tells nothing (no
// network, a mirror without advisories) that is said, and nothing fails: such a machine can't know.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { quietly, root } from './processes.mjs';
import { shippedPlaces } from './shipped-packages.mjs';

const GRAVE = ['high', 'critical'];

/** The answer of npm, whatever stands around it. */
function parse(output) {
  try {
    return JSON.parse(output.slice(output.indexOf('{'), output.lastIndexOf('}') + 1));
  } catch {
    return {};
  }
}

/** Asks, and prints what is known. @returns the exit code */
export async function audit() {
  const [command, args] = process.env.npm_execpath ? [process.execPath, [process.env.npm_execpath]] : ['npm', []];
  const { output } = await quietly(command, [...args, 'audit', '--json', '--loglevel=silent']);
  const { vulnerabilities, statusCode } = parse(output);
  if (!vulnerabilities) {
    console.log(`– advisories: left out, the registry does not answer (${statusCode ?? 'not reached'})`);
    return 0;
  }
  const shipped = shippedPlaces(root, JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')).packages);
  const known = Object.values(vulnerabilities).filter(({ nodes }) => nodes.some((place) => shipped.has(place)));
  const grave = known.filter(({ severity }) => GRAVE.includes(severity));
  for (const { name, severity, range, via } of grave) {
    const [cause] = via.filter((each) => typeof each === 'object');
    console.log(`✗ ${name} ${range}: ${severity}${cause ? `, ${cause.title} (${cause.url})` : ''}`);
  }
  const less = known.length - grave.length;
  console.log(`${grave.length === 0 ? '✓' : '✗'} advisories: ${grave.length} grave, ${less} lesser`);
  return grave.length === 0 ? 0 : 1;
}
