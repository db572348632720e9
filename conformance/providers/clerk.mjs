// Clerk sends through Svix and tells receivers to verify with Svix's SDK.
import svix from './svix.mjs';

export default { ...svix, provider: 'clerk' };
