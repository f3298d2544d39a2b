// The names that formulas have for letters, signs, spaces and styles. Pure.

const pairs = (text) => Object.fromEntries(text.trim().split(/\s+/).map((pair) => {
  const at = pair.lastIndexOf("=", pair.length - 2);
  return [pair.slice(0, at), pair.slice(at + 1)];
}));

export const LETTERS = pairs(`alpha=α beta=β gamma=γ delta=δ epsilon=ϵ varepsilon=ε zeta=ζ eta=η theta=θ
  vartheta=ϑ iota=ι kappa=κ lambda=λ mu=μ nu=ν xi=ξ omicron=ο pi=π varpi=ϖ rho=ρ varrho=ϱ sigma=σ varsigma=ς
  tau=τ upsilon=υ phi=ϕ varphi=φ chi=χ psi=ψ omega=ω Gamma=Γ Delta=Δ Theta=Θ Lambda=Λ Xi=Ξ Pi=Π Sigma=Σ
  Upsilon=Υ Phi=Φ Psi=Ψ Omega=Ω infty=∞ partial=∂ nabla=∇ ell=ℓ hbar=ℏ Re=ℜ Im=ℑ aleph=ℵ emptyset=∅
  varnothing=∅ imath=ı jmath=ȷ wp=℘ degree=° angle=∠ top=⊤ bot=⊥ ldots=… dots=… cdots=⋯ vdots=⋮ ddots=⋱
  dotsc=… dotsb=⋯ prime=′`);

export const OPERATORS = pairs(`pm=± mp=∓ times=× div=÷ cdot=⋅ ast=∗ star=⋆ circ=∘ bullet=∙ oplus=⊕ ominus=⊖
  otimes=⊗ odot=⊙ cap=∩ cup=∪ setminus=∖ wedge=∧ land=∧ vee=∨ lor=∨ neg=¬ lnot=¬ forall=∀ exists=∃ nexists=∄
  in=∈ notin=∉ ni=∋ subset=⊂ subseteq=⊆ subsetneq=⊊ supset=⊃ supseteq=⊇ le=≤ leq=≤ leqslant=⩽ ge=≥ geq=≥
  geqslant=⩾ ne=≠ neq=≠ equiv=≡ approx=≈ cong=≅ sim=∼ simeq=≃ propto=∝ ll=≪ gg=≫ prec=≺ succ=≻ mid=∣ nmid=∤
  parallel=∥ perp=⊥ to=→ rightarrow=→ gets=← leftarrow=← leftrightarrow=↔ Rightarrow=⇒ implies=⟹ Leftarrow=⇐
  Leftrightarrow=⇔ iff=⟺ longrightarrow=⟶ longleftarrow=⟵ Longrightarrow=⟹ mapsto=↦ hookrightarrow=↪ uparrow=↑
  downarrow=↓ rightharpoonup=⇀ rightleftharpoons=⇌ vdash=⊢ models=⊨ therefore=∴ because=∵ colon=: lbrace={
  rbrace=} lbrack=[ rbrack=] langle=⟨ rangle=⟩ lfloor=⌊ rfloor=⌋ lceil=⌈ rceil=⌉ vert=| Vert=‖ lvert=| rvert=|
  lVert=‖ rVert=‖ backslash=\\ dagger=† triangle=△ square=□ blacksquare=■ triangleq=≜ coloneqq=≔`);

export const BIG = pairs(`sum=∑ prod=∏ coprod=∐ int=∫ iint=∬ iiint=∭ oint=∮ bigcup=⋃ bigcap=⋂ bigoplus=⨁
  bigotimes=⨂ bigvee=⋁ bigwedge=⋀ bigsqcup=⨆`);

const NAMED = "sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan exp log ln lg lim limsup liminf max "
  + "min sup inf arg det dim gcd ker deg hom Pr mod";
export const FUNCTIONS = { ...Object.fromEntries(NAMED.split(" ").map((name) => [name, name])), bmod: "mod",
  argmax: "arg max", argmin: "arg min" };

export const SPACES = { ",": "0.17em", ":": "0.22em", ">": "0.22em", ";": "0.28em", "!": "-0.17em", quad: "1em",
  qquad: "2em", thinspace: "0.17em", enspace: "0.5em" };

export const ACCENTS = { hat: "^", widehat: "^", bar: "¯", overline: "‾", underline: "_", vec: "→", dot: "˙", ddot: "¨",
  tilde: "~", widetilde: "~", check: "ˇ", acute: "´", grave: "`", breve: "˘", overbrace: "⏞", underbrace: "⏟",
  overrightarrow: "→" };

/** Where the letters of a style begin: upper case, lower case, digits, and letters that are elsewhere. */
export const STYLES = {
  mathbb: [0x1d538, 0x1d552, 0x1d7d8, { C: "ℂ", H: "ℍ", N: "ℕ", P: "ℙ", Q: "ℚ", R: "ℝ", Z: "ℤ" }],
  mathbf: [0x1d400, 0x1d41a, 0x1d7ce],
  boldsymbol: [0x1d468, 0x1d482, 0x1d7ce],
  bm: [0x1d468, 0x1d482, 0x1d7ce],
  mathcal: [0x1d49c, 0x1d4b6, 0, { B: "ℬ", E: "ℰ", F: "ℱ", H: "ℋ", I: "ℐ", L: "ℒ", M: "ℳ", R: "ℛ", e: "ℯ",
    g: "ℊ", o: "ℴ" }],
  mathscr: [0x1d49c, 0x1d4b6, 0, { B: "ℬ", E: "ℰ", F: "ℱ", H: "ℋ", I: "ℐ", L: "ℒ", M: "ℳ", R: "ℛ", e: "ℯ",
    g: "ℊ", o: "ℴ" }],
  mathfrak: [0x1d504, 0x1d51e, 0, { C: "ℭ", H: "ℌ", I: "ℑ", R: "ℜ", Z: "ℨ" }],
};

export const DELIMITERS = { "(": "(", ")": ")", "[": "[", "]": "]", "|": "|", "/": "/", ".": "", "<": "⟨", ">": "⟩",
  "{": "{", "}": "}", langle: "⟨", rangle: "⟩", lfloor: "⌊", rfloor: "⌋", lceil: "⌈", rceil: "⌉", lbrace: "{",
  rbrace: "}", vert: "|", Vert: "‖", lvert: "|", rvert: "|", lVert: "‖", rVert: "‖", uparrow: "↑", downarrow: "↓",
  backslash: "\\" };
