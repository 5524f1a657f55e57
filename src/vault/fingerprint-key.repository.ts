import type { PrismaService } from '../database/prisma.service.js';

/** The wrapped key of the fingerprints: one row, written once for the life of the database. */
export class FingerprintKeyRepository {
  constructor(private readonly prisma: PrismaService) {}

  /** The wrapped key, or undefined in a new database. */
  async find(purpose: string): Promise<Uint8Array | undefined> {
    return (await this.prisma.vaultKey.findUnique({ where: { purpose } }))?.wrapped;
  }

  /** Stores the wrapped key unless another process was first. */
  async keep(purpose: string, wrapped: Buffer): Promise<void> {
    await this.prisma.vaultKey.createMany({
      data: [{ purpose, wrapped: new Uint8Array(wrapped) }],
      skipDuplicates: true,
    });
  }
}
