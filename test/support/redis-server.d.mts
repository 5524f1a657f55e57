export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Resolves when it has ended. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export function findRedisServer(): string | undefined;
export function startRedis(program: string, folder: string, port?: number): Promise<RedisServer>;
