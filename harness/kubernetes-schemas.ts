import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const PACKAGES = path.resolve(__dirname, '../node_modules');

/** Compares objects with the types of the Kubernetes API, which are made from its schemas. @returns faults without their place */
export function schemaFaults(objects: readonly { apiVersion: string; kind: string }[]): string[] {
  const group = (apiVersion: string) => (apiVersion === 'v1' ? 'core/v1' : apiVersion.replace('.k8s.io/', '/'));
  const lines = objects.map((object, at) => {
    const module = path.join(PACKAGES, 'kubernetes-types', group(object.apiVersion));
    return `export const manifest${at}: import('${module}').${object.kind} = ${JSON.stringify(object)};`;
  });
  const folder = mkdtempSync(path.join(os.tmpdir(), 'notebridge-manifests-'));
  const file = path.join(folder, 'manifests.ts');
  writeFileSync(file, lines.join('\n'));
  const options = ['--noEmit', '--strict', '--ignoreConfig', '--pretty', 'false', '--lib', 'es5', '--types', ''];
  const args = [path.join(PACKAGES, '@typescript/native/bin/tsc'), ...options, file];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  rmSync(folder, { recursive: true });
  const faults = stdout.split('\n').flatMap((line) => /error TS\d+: (.*)/.exec(line)?.[1] ?? []);
  if (status !== 0 && faults.length === 0) throw new Error(stdout);
  return faults;
}
