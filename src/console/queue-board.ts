import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { AppControllerRoute, AppViewRoute, IServerAdapter, UIConfig } from '@bull-board/api/typings/app';
import { Logger } from '@nestjs/common';
import { within } from '../config/within.js';
import { errorTrace } from '../http/problem/error-trace.js';
import { Problem } from '../http/problem/problem.js';
import { QUEUE_STORE } from '../queue/backend/queue-names.js';
import { boundedQuery, parametersOf } from './board-routes.js';
import { consoleFolder } from './console-files.js';
import { readStaticFiles, type StaticFile } from './static-files.js';

type Adapter = typeof import('@bull-board/api/bullMQAdapter').BullMQAdapter;
export type BoardQueue = ConstructorParameters<Adapter>[0];

/** Milliseconds that the queues' store has to answer: a producer that never reached it would wait for ever. */
const ANSWER_MS = 5_000;

const UI: UIConfig = {
  boardTitle: 'Queues · notebridge',
  hideDocsLink: true,
  // Its icon brings a style within the page.
  hideRedisDetails: true,
  miscLinks: [{ text: 'Console', url: '/console' }],
};

/** What bull-board hands to the server that it is part of. */
interface Board {
  page: string;
  files: ReadonlyMap<string, StaticFile>;
  answer(asked: string, query: Record<string, unknown>): Promise<{ status?: number; body: unknown }>;
}

/**
 * bull-board over the queues, for reading alone: a job only notifies, and what is to be done stands in the database. To
 * retry or to remove one changes nothing that the poller would not do; what needs a person has pages of its own. It is
 * loaded when somebody opens it first.
 */
export class QueueBoard {
  private readonly log = new Logger(QueueBoard.name);
  private board: Board | undefined;

  constructor(private readonly queues: readonly BoardQueue[]) {}

  /** The page of the board. */
  page(): string {
    return this.open().page;
  }

  /** A file of the page, by its path below `static/`. */
  file(name: string): StaticFile | undefined {
    return this.open().files.get(name);
  }

  /**
   * What the page asks for.
   *
   * @param asked the path below `api/`, decoded
   * @throws {Problem} 404 `not-found`, 503 `queues-unavailable`
   */
  async answer(asked: string, query: Record<string, unknown>): Promise<{ status?: number; body: unknown }> {
    const answering = this.open().answer(asked, query);
    try {
      return await within(ANSWER_MS, answering, () => {
        throw new Error('no answer');
      });
    } catch (error) {
      if (error instanceof Problem) throw error;
      this.log.warn({ msg: 'the queues could not be read', ...errorTrace(error) });
      const detail = `The store of the queues (${QUEUE_STORE}) does not answer; work goes on without it, a little later.`;
      throw new Problem(503, 'queues-unavailable', detail, { retryAfterSeconds: 5 });
    }
  }

  private open(): Board {
    this.board ??= loadBoard(this.queues);
    return this.board;
  }
}

/** Loads bull-board, which takes as long as a tenth of a start does. */
function loadBoard(queues: readonly BoardQueue[]): Board {
  const { createBullBoard } = require('@bull-board/api') as typeof import('@bull-board/api');
  const { BullMQAdapter } = require('@bull-board/api/bullMQAdapter') as { BullMQAdapter: Adapter };
  const shown = queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true }));
  const server = new BoardServer();
  createBullBoard({ queues: shown, serverAdapter: server, options: { uiConfig: UI } });
  return server.board();
}

/** Takes what bull-board would have a web server register; the routes are the service's own. */
class BoardServer implements IServerAdapter {
  private queues: Parameters<IServerAdapter['setQueues']>[0] = new Map();
  private views = '';
  private statics = '';
  private entry: AppViewRoute['handler'] = () => ({ name: '', params: {} });
  private routes: AppControllerRoute[] = [];
  private uiConfig: UIConfig = {};

  setQueues(queues: typeof this.queues): this {
    this.queues = queues;
    return this;
  }

  setViewsPath(folder: string): this {
    this.views = folder;
    return this;
  }

  setStaticPath(_route: string, folder: string): this {
    this.statics = folder;
    return this;
  }

  setEntryRoute({ handler }: AppViewRoute): this {
    this.entry = handler;
    return this;
  }

  setApiRoutes(routes: AppControllerRoute[]): this {
    this.routes = routes.filter(({ method }) => method === 'get');
    return this;
  }

  setUIConfig(config: UIConfig): this {
    this.uiConfig = config;
    return this;
  }

  setErrorHandler(): this {
    return this;
  }

  board(): Board {
    return {
      page: this.page(),
      files: new Map([...readStaticFiles(this.statics), ...readStaticFiles(path.join(consoleFolder(), 'board'))]),
      answer: async (asked, query) => {
        for (const { route, handler } of this.routes) {
          const params = parametersOf(String(route), asked);
          const { queues, uiConfig } = this;
          if (params) return handler({ queues, uiConfig, params, query: boundedQuery(query), body: {}, headers: {} });
        }
        throw new Problem(404, 'not-found', 'The board of the queues has no such part; open /queues.');
      },
    };
  }

  /**
   * The page with the scripts and styles of bull-board's own, which has inline styles and a font of another host too, and
   * with ours (`console/public/board`).
   */
  private page(): string {
    const { uiConfig } = this;
    const { params } = this.entry({ basePath: '/queues/', uiConfig });
    const template = readFileSync(path.join(this.views, 'index.ejs'), 'utf8');
    const named = (form: RegExp) => [...template.matchAll(form)].map(([, file]) => file);
    const styles = [...named(/<link href="(static\/[\w./-]+\.css)"/g), 'static/board.css'];
    const scripts = ['static/board.js', ...named(/<script defer src="(static\/[\w./-]+\.js)"/g)];
    return `<!DOCTYPE html>
<html lang="en" dir="ltr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<base href="/queues/">
<title>${uiConfig.boardTitle}</title>
<link rel="icon" type="image/svg+xml" id="fav-logo" href="static/images/logo.svg">
${styles.map((file) => `<link rel="stylesheet" href="${file}">`).join('\n')}
</head>
<body class="preload">
<script id="__UI_CONFIG__" type="application/json">${params.uiConfig}</script>
<div id="root"></div>
${scripts.map((file) => `<script defer src="${file}"></script>`).join('\n')}
</body>
</html>
`;
  }
}
