import { sumOfOutcomes } from '../../harness/service.js';
import type { ImportResponse } from '../../src/imports/api/import-view.js';
import type { ImportWork } from '../workload/import-work.js';
import type { World } from '../world.js';

/** The same files again and again, as an EHR sends them each night. */
export class Reimports {
  private first = '';
  private readonly ids: string[] = [];

  constructor(
    private readonly world: World,
    private readonly work: ImportWork,
  ) {}

  /** Imports the people. */
  async begin(): Promise<void> {
    this.first = await this.work.begin();
  }

  /** Uploads the files again, once the people are imported; not if the process that takes them is killed. */
  async again(): Promise<void> {
    if (!(await this.read(this.first))?.finishedAt) return;
    const api = await this.world.processes.api();
    const sent = await api.startImport('kind=clients', [...this.work.files]).catch(() => undefined);
    if (sent) this.ids.push(sent.id);
  }

  /** Waits until all have ended, and asks the oracle. */
  async ended(): Promise<void> {
    for (const id of this.ids) {
      const view = await this.world.reach('an import of the same files has ended', async () => {
        const found = await this.read(id);
        return found?.finishedAt ? found : undefined;
      });
      this.world.oracle.same(
        'an import of the same files completes with all its rows',
        [view.state, sumOfOutcomes(view)],
        ['completed', this.work.people],
      );
    }
    this.world.setting.log(`${this.ids.length} imports of the same files`);
  }

  private async read(id: string): Promise<ImportResponse | undefined> {
    return (await this.world.ehr.call<ImportResponse>('GET', `/v1/imports/${id}`))?.body;
  }
}
