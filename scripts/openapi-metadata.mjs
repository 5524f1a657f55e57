// Writes src/generated/metadata.ts: what @nestjs/swagger's compiler plugin reads from the types, validators and doc
// comments of API models and controllers. The build is SWC's, in which that plugin can't run.
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { PluginMetadataGenerator } from '@nestjs/cli/lib/compiler/plugins/plugin-metadata-generator.js';
import { ReadonlyVisitor } from '@nestjs/swagger/plugin';

const ts = createRequire(import.meta.url)('typescript');
const pathToSource = path.resolve(import.meta.dirname, '../src/generated');
const dtoFileNameSuffix = ['.dto.ts', '-view.ts', '/page.ts'];
const read = [...dtoFileNameSuffix, '.controller.ts'];

const { options, fileNames } = ts.getParsedCommandLineOfConfigFile('tsconfig.build.json', undefined, ts.sys);
// The types of packages contain none of our models, and take most of the time.
const settings = { ...options, types: [], stableTypeOrdering: true };
const host = ts.createCompilerHost(settings);
host.resolveModuleNameLiterals = (names, from) =>
  names.map(({ text }) => (text.startsWith('.') ? ts.resolveModuleName(text, from, settings, host) : {}));

mkdirSync(pathToSource, { recursive: true });
new PluginMetadataGenerator().generate({
  visitors: [new ReadonlyVisitor({ pathToSource, dtoFileNameSuffix, introspectComments: true })],
  outputDir: pathToSource,
  tsProgramRef: ts.createProgram(
    fileNames.filter((file) => read.some((end) => file.endsWith(end))),
    settings,
    host,
  ),
});
