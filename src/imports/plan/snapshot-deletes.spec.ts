import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { rawRow } from '../parse/row/import-row.js';
import { mentionedIds } from './snapshot-deletes.repository.js';

describe('the ids that a rejected row mentions', () => {
  it.each([
    ['a shifted cell', rawRow(['Roe', 'c 1', 'Ann']), 'c 1'],
    ['a padded cell', rawRow([' c-1 ', 'Ann']), 'c-1'],
    ['a list of providers', rawRow(['', '', 'p-1 | c-1']), 'c-1'],
    ['a cell that swallowed the next row', rawRow(['c-0', 'Ann,Roe\nc-1,Bea', 'Roe']), 'c-1'],
    ['a line whose quotes are broken', rawRow('c-1;"Ann;Roe'), 'c-1'],
    ['JSON that is broken', rawRow('{"externalId":"c-1",'), 'c-1'],
    ['an id with an invisible character', rawRow(['c\u200b-1']), 'c-1'],
  ])('include that of %s', (_, raw, id) => {
    expect(mentionedIds(raw)).toContain(id);
  });

  it('are all those of its cells, whatever the row looked like', () => {
    const id = fc
      .string({ unit: fc.constantFrom('a', '-', '1', 'é', "'", ' '), minLength: 1 })
      .map((text) => `${text}x`);
    fc.assert(
      fc.property(fc.array(id, { maxLength: 6 }), fc.constantFrom(',', ';', '|', '\t', '","', '\n'), (ids, between) => {
        for (const raw of [rawRow(ids), rawRow([ids.join(between)]), rawRow(ids.join(between))]) {
          for (const one of ids) expect(mentionedIds(raw)).toContain(one.trim());
        }
      }),
      propertyRuns(),
    );
  });

  it('are none that could not be one', () => {
    expect([...mentionedIds(rawRow(['', 'x'.repeat(201), 'a\u0000b']))]).toEqual([]);
  });
});
