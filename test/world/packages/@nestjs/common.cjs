module.exports = globalThis.loadShared('@nestjs/common');
