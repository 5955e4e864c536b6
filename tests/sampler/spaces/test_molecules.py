"""Molecules as a space: attaching and cutting, p0, configs and states, vocabularies."""

import itertools
import math

import numpy as np
import pytest
from rdkit import Chem

from sampler import Purpose, stream
from sampler.kernels.fragments import FragmentMoves, drug_like_sizes, pilot
from sampler.objects.molecules import describe_molecule
from sampler.spaces.molecules import space as spaces
from sampler.spaces.molecules import vocabulary as vocabularies
from sampler.spaces.molecules.graph import attach, canonical_state, heavy_atoms, read_fragment, read_molecule
from tests.support.sampling import walk

# Attaching and cutting: each undoes the other, also where RDKit's own count of hydrogens would not.


# State, fragment, and the products of attaching it at every atom that has room.
GROWN = [
    ("c1cc[nH]c1", "*C", {"Cn1cccc1", "Cc1ccc[nH]1", "Cc1cc[nH]c1"}),
    ("C[NH3+]", "*C", {"CC[NH3+]", "C[NH2+]C"}),
    ("C[SH+]C", "*C", {"C[S+](C)C", "CC[SH+]C"}),
    ("c1ccccc1", "*[N+](=O)[O-]", {"O=[N+]([O-])c1ccccc1"}),
    ("CO", "*S(C)(=O)=O", {"COS(C)(=O)=O", "CS(=O)(=O)CO"}),
    ("C1CC1", "*n1cccn1", {"c1cnn(C2CC2)c1"}),
    (
        "O=c1cccc[nH]1",
        "*C",
        {"Cn1ccccc1=O", "Cc1ccc[nH]c1=O", "Cc1cc[nH]c(=O)c1", "Cc1ccc(=O)[nH]c1", "Cc1cccc(=O)[nH]1"},
    ),
    ("O", "*C", {"CO"}),
    ("C[N+](=O)[O-]", "*O", {"O=[N+]([O-])CO"}),
    ("CO", "*[N+](C)(C)C", {"CO[N+](C)(C)C", "C[N+](C)(C)CO"}),
]


def products(state, fragment):
    graph = read_molecule(state)
    grown = [attach(graph, atom, read_fragment(fragment)) for atom in graph.rooms]
    return {product.smiles for product in grown if product is not None}


def cuts(state):
    graph = read_molecule(state)
    return {(graph.pieces(cut).kept, graph.pieces(cut).fragment) for cut in graph.cuts}


@pytest.mark.parametrize(("state", "fragment", "expected"), GROWN)
def test_a_fragment_takes_the_place_of_a_hydrogen_and_a_cut_gives_it_back(state, fragment, expected):
    assert products(state, fragment) == {canonical_state(smiles) for smiles in expected}
    for product in products(state, fragment):
        assert (state, read_fragment(fragment).smiles) in cuts(product)


def test_a_cut_at_a_charge_leaves_no_radical():
    assert cuts("C[S+](C)C") == {("C[SH+]C", "*C"), ("C", "*[S+](C)C")}
    assert cuts("CC[NH3+]") == {("C", "*C[NH3+]"), ("C[NH3+]", "*C"), ("CC", "*[NH3+]"), ("[NH4+]", "*CC")}


def test_a_bond_between_charges_is_neither_cut_nor_made():
    assert cuts("C[N+](=O)[O-]") == {("C", "*[N+](=O)[O-]"), ("O=[NH+][O-]", "*C")}
    assert products("[OH-]", "*[N+](C)(C)C") == set()


def test_rings_and_double_bonds_are_not_cut():
    assert cuts("C1CC1") == cuts("C=C") == cuts("C") == set()
    assert cuts("C=CC#N") == {("C=C", "*C#N"), ("C#N", "*C=C")}


def test_the_atom_that_lost_a_fragment_is_named_as_the_kept_side_is_written():
    graph = read_molecule("OCc1ccc(N)cc1C(F)F")
    for cut in graph.cuts:
        pieces = graph.pieces(cut)
        kept, fragment = read_molecule(pieces.kept), read_fragment(pieces.fragment)
        assert fragment.size == cut.size
        assert attach(kept, pieces.atom, fragment).smiles == graph.smiles


@pytest.mark.parametrize(
    ("smiles", "state"),
    [
        ("OCC", "CCO"), ("C[C@H](F)Cl", "CC(F)Cl"), ("C/C=C/C", "CC=CC"), ("C1=CC=CC=C1", "c1ccccc1"),
        ("[CH3][H]", "C"), ("CN(=O)=O", "C[N+](=O)[O-]"),
    ],
)  # fmt: skip
def test_ways_to_write_one_molecule_are_one_state(smiles, state):
    assert canonical_state(smiles) == state


@pytest.mark.parametrize("smiles", ["", "C.C", "C[CH2]", "*C", "[CH3:1]C", "[H][H]", "hello", "C1CC", "CN(C)(C)(C)C"])
def test_what_no_state_can_be_is_refused_in_silence(smiles, capfd):
    with pytest.raises(ValueError, match="“"):
        canonical_state(smiles)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "smiles", ["C", "*", "**", "*C*", "*=C", "C*C", "[*:1]C", "[1*]C", "*[CH2]", "*C.C", "nonsense", "*[H]"]
)
def test_what_is_no_fragment_is_refused(smiles):
    with pytest.raises(ValueError, match="“"):
        read_fragment(smiles)


def test_atoms_that_only_look_alike_are_told_apart():
    # Cuneane: every atom carries one hydrogen and three bonds, and yet there are three kinds of them.
    cuneane = read_molecule(canonical_state("C12C3C1C4C5C2C5C43"))
    methyl = read_fragment("*C")
    products_of = {}
    for atom in cuneane.rooms:
        products_of.setdefault(attach(cuneane, atom, methyl).smiles, set()).add(cuneane.ranks[atom])
    assert len(products_of) == 3
    assert all(len(ranks) == 1 for ranks in products_of.values())


# p0 on molecules: sizes, filters, the frozen weights, the pilot that finds such; and what a chemist reads off.


THREE = (0.0, -1.0, -3.0)


def log_p0(distribution, smiles):
    return distribution.log_p0(Chem.MolFromSmiles(smiles))


def test_sizes_have_their_weight_and_no_other_does():
    distribution = spaces.MoleculeDistribution(THREE)
    assert [log_p0(distribution, smiles) for smiles in ("C", "CO", "CCO", "CCCO")] == [0.0, -1.0, -3.0, -math.inf]
    assert distribution.largest == 3
    assert log_p0(spaces.MoleculeDistribution((-math.inf, 0.0)), "C") == -math.inf


@pytest.mark.parametrize(
    ("filters", "inside", "outside"),
    [
        ({"elements": frozenset({"C", "O"})}, "CCO", "CCN"), ({"ring_sizes": frozenset({5, 6})}, "C1CCCC1", "C1CC1"),
        ({"ring_sizes": frozenset()}, "CC", "C1CCCC1"), ({"alerts": ("BRENK",)}, "CCO", "CCCCl"),
        ({"alerts": ("PAINS",)}, "c1ccccc1", "O=C1NC(=S)SC1=Cc1ccccc1"),
    ],
)  # fmt: skip
def test_a_filter_takes_molecules_out_of_the_target(filters, inside, outside):
    distribution = spaces.MoleculeDistribution((0.0,) * 20, **filters)
    assert log_p0(distribution, inside) == 0.0
    assert log_p0(distribution, outside) == -math.inf


def test_the_frozen_weights_keep_a_chain_without_judges_at_drug_like_sizes():
    # A chain forgets its size within thousands of steps, so the chains start at drugs; without weights they leave.
    weights = spaces.default_size_log_weights()
    assert len(weights) == 40
    assert 15 < mean_size(weights) < 32
    assert mean_size((0.0,) * 40) > 35


def mean_size(weights):
    """Return the mean size along chains that start at diazepam, sildenafil and atenolol (20, 33, 19 heavy atoms)."""
    kernel = FragmentMoves(vocabularies.default_vocabulary(), spaces.MoleculeDistribution(weights))
    drugs = (
        "CN1C(=O)CN=C(c2ccccc2)c2cc(Cl)ccc21",
        "CCCc1nn(C)c2c(=O)nc(-c3cc(S(=O)(=O)N4CCN(C)CC4)ccc3OCC)[nH]c12",
        "CC(C)NCC(O)COc1ccc(CC(N)=O)cc1",
    )
    chains = [
        walk(stream(seed, 0, 0, Purpose.PROPOSAL), kernel, canonical_state(drug), 1_500)
        for seed, drug in enumerate(drugs)
    ]
    return np.mean([heavy_atoms(state) for chain in chains for state in itertools.islice(chain, 500, None)])


def test_the_pilot_counts_molecules():
    # Alkanes of 1 to 6 carbons: 1, 1, 1, 2, 3, 5 molecules.
    distribution = spaces.MoleculeDistribution((0.0,) * 6)
    found = pilot(vocabularies.Vocabulary([("*C", 1.0)]), distribution, stream(2, 0, 0, Purpose.PROPOSAL), 12_000)
    expected = drug_like_sizes(6) - np.log([1, 1, 1, 2, 3, 5])
    assert found - found.mean() == pytest.approx(expected - expected.mean(), abs=0.3)


def test_aspirin_is_described_as_it_is_known():
    aspirin = describe_molecule("CC(=O)Oc1ccccc1C(=O)O")
    assert aspirin.qed == pytest.approx(0.550, abs=0.002)
    assert aspirin.synthetic_accessibility == pytest.approx(1.58, abs=0.02)
    assert (aspirin.weight, aspirin.log_p) == pytest.approx((180.16, 1.31), abs=0.01)
    assert aspirin.tpsa == pytest.approx(63.6, abs=0.1)
    assert (aspirin.donors, aspirin.acceptors, aspirin.rotatable_bonds, aspirin.rings) == (1, 3, 2, 1)
    assert (aspirin.heavy_atoms, aspirin.alerts) == (13, ("phenol_ester",))


# Generated molecules as a space: configs, states and the texts that stand for them.


OWN = {
    "kind": "molecules", "size_log_weights": [0.0, None, -1.5, -2.0], "elements": ["C", "O"], "ring_sizes": [3],
    "alerts": ["PAINS"], "vocabulary": ["*C", "C*", "*O"], "start": "C(C)O",
}  # fmt: skip


def test_the_default_is_the_frozen_distribution_from_ethane():
    space = spaces.MoleculesConfig().build()
    assert space.start(np.random.default_rng(0), chain=3) == "CC"
    assert space.distribution.size_log_weights == spaces.default_size_log_weights()
    assert space.distribution.largest == spaces.MAX_HEAVY_ATOMS
    assert len(space.vocabulary) == 1_000
    assert spaces.MoleculesConfig().objects == "molecules"


def test_a_config_is_whole_by_itself():
    config = spaces.MoleculesConfig.model_validate(OWN)
    again = spaces.MoleculesConfig.model_validate_json(config.model_dump_json())
    assert again == config
    assert again.build() is config.build()
    space = again.build()
    assert space.start(np.random.default_rng(0), chain=0) == "CCO"
    assert space.distribution.size_log_weights == (0.0, -np.inf, -1.5, -2.0)
    assert space.vocabulary.weights == pytest.approx({"*C": 2 / 3, "*O": 1 / 3})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("start", "C1CC", "not a molecule"), ("start", "C.C", "not several"), ("start", "*C", "dummy atoms"),
        ("start", "C/C=C/O", "has stereochemistry, which generated molecules do not have; use “CC=CO”"),
        ("start", "CCN", "p0 allows"), ("start", "CC", "p0 allows"), ("start", "CCOCC", "p0 allows"),
        ("start", "C1CCC1", "p0 allows"), ("size_log_weights", [None, None], "at least one size"),
        ("size_log_weights", [0.0, float("-inf")], "finite number"), ("elements", ["C", "Xx"], "Xx"),
        ("alerts", ["LOUD"], "PAINS"), ("vocabulary", "my own", '"default" or a list'),
        ("vocabulary", [1], '"default" or a list'), ("vocabulary", [], "1 to 5,000"),
        ("vocabulary", ["*C"] * (spaces.MAX_FRAGMENTS + 1), "5,001"), ("vocabulary", ["*C", "CC"], "one dummy"),
        ("vocabulary", ["*" + "C" * 11], "11 heavy atoms"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_once_and_by_its_name(field, value, message):
    with pytest.raises(ValueError, match=field) as caught:
        spaces.MoleculesConfig.model_validate(OWN | {field: value})
    assert message in str(caught.value)
    assert [error["loc"][0] for error in caught.value.errors()] == [field]


def test_the_start_must_fit_also_where_it_is_not_given():
    with pytest.raises(ValueError, match="start must be a molecule that p0 allows"):
        spaces.MoleculesConfig(elements=("N",))


@pytest.mark.parametrize("state", ["CC", "CC(=O)Nc1ccc(O)cc1", "O=[N+]([O-])c1ccccc1", "c1cc[nH]c1"])
def test_a_state_and_its_code_are_the_same_text(state):
    space = spaces.MoleculesConfig().build()
    assert space.decode(space.encode(state)) == space.content(state) == state


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("OCC", "canonical"), ("C[C@H](F)Cl", "stereochemistry"), ("C" * 41, "p0 allows"),
        ("hello", "not a molecule"), ("", "not a molecule"),
    ],
)  # fmt: skip
def test_a_text_that_stands_for_no_state_is_refused(code, message):
    with pytest.raises(ValueError, match=message):
        spaces.MoleculesConfig().build().decode(code)


# Vocabularies: cutting, counting and ranking fragments, their files, and the package's own list.


def test_fragments_are_cut_at_rings_and_functional_atoms_counted_and_ranked():
    # Toluene gives both its halves; in butanone only the bonds at the carbonyl are cut.
    assert vocabularies.derive_vocabulary(["Cc1ccccc1"]) == [("*C", 1), ("*c1ccccc1", 1)]
    assert vocabularies.derive_vocabulary(["CCCC", "CCC(C)=O"]) == [
        ("*C", 1),
        ("*C(=O)CC", 1),
        ("*C(C)=O", 1),
        ("*CC", 1),
    ]
    assert vocabularies.derive_vocabulary(["Cc1ccccc1", "CC(C)=O"]) == [("*C", 3), ("*C(C)=O", 2), ("*c1ccccc1", 1)]


def test_a_molecule_counts_once_by_its_largest_part_and_whatever_its_stereochemistry():
    same = ["C[C@H](O)c1ccccc1", "C[C@@H](O)c1ccccc1", "OC(C)c1ccccc1.Cl"]
    assert vocabularies.derive_vocabulary(same) == vocabularies.derive_vocabulary(same[:1])


def test_fragments_that_are_charged_too_large_or_of_rare_elements_are_left_out():
    kept = dict(
        vocabularies.derive_vocabulary(
            ["c1ccccc1[N+](=O)[O-]", "c1ccccc1[O-]", "c1ccccc1[SeH]", "Oc1ccc2cc3ccccc3cc2c1"]
        )
    )
    assert set(kept) == {"*[N+](=O)[O-]", "*c1ccccc1", "*O"}


def test_entries_that_are_one_fragment_add_their_weights():
    vocabulary = vocabularies.Vocabulary([("*CO", 1), ("OC*", 2), ("*C", 1), ("C[*]", 4)])
    assert vocabulary.weights == {"*CO": 3 / 8, "*C": 5 / 8}
    assert (len(vocabulary), vocabulary.largest) == (2, 2)
    assert "*CO" in vocabulary
    assert "OC*" not in vocabulary


def test_a_file_of_fragments_can_be_written_and_read_back(tmp_path):
    fragments, path = [("*C", 12), ("*O", 3), ("*C", 1)], tmp_path / "fragments.tsv"
    path.write_text(vocabularies.format_fragments(fragments, "made here\nfor a test"), encoding="utf-8")
    assert path.read_text(encoding="utf-8").startswith("# made here\n# for a test\n*C\t12\n")
    assert vocabularies.parse_fragments(path.read_text(encoding="utf-8")) == fragments
    assert vocabularies.load_vocabulary(path).weights == pytest.approx({"*C": 2 / 3, "*O": 1 / 3})


@pytest.mark.parametrize("weight", ["0,5", "nan", "many", ""])
def test_a_size_weight_that_is_no_number_is_named_by_its_size(weight):
    with pytest.raises(ValueError, match=f"of 2 heavy atoms must be a number such as -1.5, not “{weight}”"):
        spaces.parse_size_log_weights(f"1\t-inf\n2\t{weight}\n")


@pytest.mark.parametrize("read", [canonical_state, read_fragment, describe_molecule])
def test_a_molecule_that_would_end_the_process_is_refused_by_its_length(read):
    with pytest.raises(ValueError, match=r"has 20,001 characters; at most 3,000 are allowed"):
        read("*" + "C" * 20_000)


def test_a_fragment_with_a_nul_character_is_refused_before_a_database_does():
    with pytest.raises(ValueError, match=r"vocabulary: “\*C” is followed by a NUL character \(U\+0000\); remove it"):
        spaces.MoleculesConfig(vocabulary=("*C\0", "*O"))


def test_a_file_of_fragments_may_begin_with_a_byte_order_mark_and_is_utf_8(tmp_path):
    path = tmp_path / "fragments.tsv"
    path.write_bytes(b"\xef\xbb\xbf# mine\n*C\n")
    assert vocabularies.load_vocabulary(path).weights == {"*C": 1}
    path.write_bytes(b"# caf\xe9\n*C\n")
    with pytest.raises(ValueError, match=r"fragments\.tsv is not UTF-8 text; save it as UTF-8"):
        vocabularies.load_vocabulary(path)


def test_the_default_vocabulary_has_a_thousand_usable_fragments():
    vocabulary = vocabularies.default_vocabulary()
    assert len(vocabulary) == 1_000
    assert set(vocabulary.weights.values()) == {1 / 1_000}
    for fragment in vocabulary:
        assert 1 <= fragment.size <= vocabularies.MAX_FRAGMENT_ATOMS
        assert all(atom.GetSymbol() in vocabularies.FRAGMENT_ELEMENTS for atom in fragment.molecule.GetAtoms())
        assert read_fragment(fragment.smiles).smiles == fragment.smiles
