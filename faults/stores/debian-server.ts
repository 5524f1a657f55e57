import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CACHE } from './postgres-server.js';

/** Debian 13, with Redis 8.0 and Valkey 8.1. Includes their C library, because this system may have an older one. */
const SOURCE =
  'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main\n';
const LIBRARIES = [
  ...['libc6', 'libjemalloc2', 'liblzf1', 'libssl3t64', 'libsystemd0', 'libgcc-s1', 'libstdc++6', 'liblua5.1-0'],
  ...['zlib1g', 'libzstd1', 'libcap2', 'liblzma5', 'liblz4-1', 'libgcrypt20', 'libatomic1'],
];

/** A server program from Debian, unpacked on the first use without installing it; undefined without apt-get. */
export function debianServer(name: 'redis' | 'valkey'): string | undefined {
  const folder = path.join(CACHE, name);
  const program = path.join(folder, `${name}-server`);
  if (existsSync(program)) return program;
  const root = path.join(folder, 'root');
  for (const made of ['root', 'lists/partial', 'cache/archives/partial', 'packages'])
    mkdirSync(path.join(folder, made), { recursive: true });
  writeFileSync(path.join(folder, 'sources.list'), SOURCE);
  writeFileSync(path.join(folder, 'status'), '');
  const options = {
    'Dir::Etc::sourcelist': path.join(folder, 'sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State': folder,
    'Dir::State::status': path.join(folder, 'status'),
    'Dir::Cache': path.join(folder, 'cache'),
    'APT::Sandbox::User': 'root',
  };
  const words = Object.entries(options).flatMap(([option, value]) => ['-o', `${option}=${value}`]);
  const packages = path.join(folder, 'packages');
  const quietly = { cwd: packages, stdio: 'ignore' } as const;
  try {
    execFileSync('apt-get', [...words, 'update'], quietly);
    execFileSync('apt-get', [...words, 'download', `${name}-server`, `${name}-tools`, ...LIBRARIES], quietly);
    for (const file of readdirSync(packages)) execFileSync('dpkg', ['-x', file, root], quietly);
  } catch {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  const loader = `'${root}/usr/lib64/ld-linux-x86-64.so.2' --argv0 ${name}-server`;
  const libraries = `--library-path '${root}/usr/lib/x86_64-linux-gnu'`;
  const script = `#!/bin/sh\nexec ${loader} ${libraries} '${root}/usr/bin/${name}-check-rdb' "$@"\n`;
  writeFileSync(program, script, { mode: 0o755 });
  return program;
}
