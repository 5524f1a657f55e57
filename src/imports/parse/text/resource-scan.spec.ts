import fc from 'fast-check';
import { ResourceScan } from './resource-scan.js';

const SEED = Number(process.env.SEED);

describe(`the scan of a resource that is too large to keep (SEED=${SEED})`, () => {
  it('finds the type and id that JSON.parse finds, however the text was cut, bare or in an entry of a Bundle', () => {
    const more = fc.dictionary(fc.constantFrom('id2', 'contained', 'text', '"'), fc.jsonValue());
    const resource = fc.tuple(more, fc.constantFrom('Group', 'Patient'), fc.stringMatching(/^[a-z0-9-]{1,20}$/), more);
    fc.assert(
      fc.property(resource, fc.integer({ min: 1, max: 9 }), fc.boolean(), ([before, type, id, after], chunk, bare) => {
        const whole = { ...before, contained: [{ resourceType: 'X', id: 'x' }], resourceType: type, id, ...after };
        const { resourceType, id: lastId } = whole as { resourceType: string; id: string };
        const entry = { link: [{ resource: { resourceType: 'X', id: 'x' } }], resource: whole, search: { id: 'x' } };
        const text = JSON.stringify(bare ? whole : entry, null, chunk % 2);
        const scan = new ResourceScan(bare ? 'resource' : 'entry');
        for (let at = 0; at < text.length; at += chunk) scan.push(text.slice(at, at + chunk));
        expect([scan.resourceType, scan.id]).toEqual([resourceType, lastId]);
      }),
      { seed: SEED, numRuns: 500 },
    );
  });

  it('keeps nothing of what is long', () => {
    const scan = new ResourceScan('resource');
    scan.push('{"id":"');
    for (let piece = 0; piece < 1000; piece++) scan.push('x'.repeat(1000));
    expect(JSON.stringify(scan).length).toBeLessThan(600);
    scan.push('","resourceType":"Group"}');
    expect([scan.resourceType, scan.id]).toEqual(['Group', undefined]);
  });
});
