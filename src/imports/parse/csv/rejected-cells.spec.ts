import fc from 'fast-check';
import { propertyRuns } from '../../../config/property-runs.spec-support.js';
import { guardFormula, isRejectedHeader, REJECTED_COLUMNS, unguardFormula } from './rejected-cells.js';

describe('guardFormula', () => {
  it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', ' =1', '＝1', "'=1"])('guards %j', (cell) => {
    expect(guardFormula(cell)).toBe(`'${cell}`);
  });

  it('leaves other quotes alone', () => {
    expect(guardFormula("O'Hara")).toBe("O'Hara");
  });

  it('is undone exactly by unguardFormula', () => {
    const unit = fc.constantFrom('=', '+', '-', '@', "'", '"', ',', ';', '\t', '\r', '\n', ' ', 'a', 'é', '＝');
    const property = fc.property(fc.string({ unit, maxLength: 6 }), (cell) => {
      expect(unguardFormula(guardFormula(cell))).toBe(cell);
      expect(guardFormula(cell)).not.toMatch(/^\s*[=+\-@＝]/);
    });
    fc.assert(property, propertyRuns());
  });
});

describe('isRejectedHeader', () => {
  it('accepts exactly the documented columns, and padding', () => {
    expect(isRejectedHeader([...REJECTED_COLUMNS, '', ' '])).toBe(true);
    expect(isRejectedHeader([...REJECTED_COLUMNS, 'Room'])).toBe(false);
    expect(isRejectedHeader(REJECTED_COLUMNS.slice(1))).toBe(false);
  });
});
