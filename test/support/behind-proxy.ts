import { startProxyOf, type TcpProxy } from '../../harness/tcp-proxy.js';
import type { World } from '../../harness/world/world.js';
import type { WorldService } from '../../harness/world/world-service.js';

/** One more service of a world, whose database can be cut off without the world's own connections. */
export async function startBehindProxy(world: World): Promise<{ proxy: TcpProxy; service: WorldService }> {
  const { proxy, url } = await startProxyOf(world.database.url);
  url.searchParams.set('options', '-c search_path=public,vtime,pg_catalog');
  return { proxy, service: await world.startAnother({ DATABASE_URL: url.href }) };
}
