import pg from 'pg';

/**
 * A connection of `pg` that ends, and closes its socket, when the answer to a statement is overdue (`query_timeout`). Otherwise
 * Prisma would return it to its pool, where the next user would wait for the old statement. The message is node-postgres'.
 */
export class TimedClient extends pg.Client {
  override query(...args: never[]): never {
    const answer: unknown = super.query(...(args as unknown as [string]));
    if (answer instanceof Promise)
      answer.catch((error: unknown) => {
        if (error instanceof Error && error.message === 'Query read timeout') void this.end();
      });
    return answer as never;
  }
}
