import { PrismaService } from './prisma.service.js';

const ONE_CONNECTION = { receiver: 0, heartbeat: 0, feed: 0, queues: 0, uploads: 0, bulk: 0, usual: 1 };

/** Runs work with Prisma outside the service, for commands. */
export async function withPrisma<T>(url: string, work: (prisma: PrismaService) => Promise<T>): Promise<T> {
  const prisma = new PrismaService(url, ONE_CONNECTION);
  return work(prisma).finally(() => prisma.onApplicationShutdown());
}
