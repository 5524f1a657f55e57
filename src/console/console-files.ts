import path from 'node:path';
import { Injectable } from '@nestjs/common';
import { readStaticFiles, type StaticFile } from './static-files.js';

/** The built console. */
@Injectable()
export class ConsoleFiles {
  private readonly files = readStaticFiles(consoleFolder());

  /** The page that every address of the console opens; undefined when it was not built. */
  page(): StaticFile | undefined {
    return this.files.get('index.html');
  }

  /** A script or a style by its name below `assets/`, which holds a hash of what it is. */
  asset(name: string): StaticFile | undefined {
    return this.files.get(`assets/${name}`);
  }
}

/** The folder of the built console. */
function consoleFolder(): string {
  const root = __dirname.includes(`${path.sep}dist${path.sep}`) ? '../../..' : '../..';
  return path.resolve(__dirname, root, 'dist/console');
}
